// The routes: every view is a link, and its filters are search parameters. Pages are loaded when they are opened.
import type { QueryClient } from '@tanstack/react-query'
import { createRootRoute, createRoute, createRouter, lazyRouteComponent } from '@tanstack/react-router'
import { parseFleetSearch } from './api/fleet-search.ts'
import { CrashPage, NotFoundPage } from './shell/crash-page.tsx'
import { Shell } from './shell/shell.tsx'

const root = createRootRoute({ component: Shell, errorComponent: CrashPage, notFoundComponent: NotFoundPage })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home/home-page.tsx'), 'HomePage'),
})

const fleet = createRoute({
  getParentRoute: () => root,
  path: '/fleet',
  validateSearch: parseFleetSearch,
  component: lazyRouteComponent(() => import('./pages/fleet/fleet-page.tsx'), 'FleetPage'),
})

const cluster = createRoute({
  getParentRoute: () => root,
  path: '/clusters/$cluster',
  validateSearch: parseFleetSearch,
  component: lazyRouteComponent(() => import('./pages/cluster/cluster-page.tsx'), 'ClusterPage'),
})

const routeTree = root.addChildren([home, fleet, cluster])

export function createConsoleRouter(client: QueryClient) {
  return createRouter({
    routeTree,
    basepath: '/console',
    defaultErrorComponent: CrashPage,
    defaultPreload: 'intent',
    scrollRestoration: true,
    context: { client },
  })
}

declare module '@tanstack/react-router' {
  interface Register {
    router: ReturnType<typeof createConsoleRouter>
  }
}
