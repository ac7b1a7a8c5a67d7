// The routes: every view is a link, and its filters are search parameters. Pages are loaded when they are opened.
import type { QueryClient } from '@tanstack/react-query'
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from '@tanstack/react-router'
import { parseCatalogSearch } from './api/catalog-search.ts'
import { parseChangePage, parseChangeSearch } from './api/change-search.ts'
import { parseClusterSearch } from './api/cluster-search.ts'
import { type FleetSearch, filterOf, parseFleetSearch } from './api/fleet-search.ts'
import { prefetchFleet } from './api/prefetch-fleet.ts'
import { parseRolloutSearch, parseStartSearch } from './api/rollout-search.ts'
import { CrashPage, NotFoundPage } from './shell/crash-page.tsx'
import { Shell } from './shell/shell.tsx'

type Search = Readonly<Record<string, unknown>>

/** What a page does not know, or what makes no sense, is gone from the URL: the router would hand it on as it is. */
function only<T extends object>(parse: (search: Search) => T): (search: Search) => T {
  return (search) => ({
    ...Object.fromEntries(Object.keys(search).map((name) => [name, undefined])),
    ...parse(search),
  })
}

const root = createRootRouteWithContext<{ readonly client: QueryClient }>()({
  component: Shell,
  errorComponent: CrashPage,
  notFoundComponent: NotFoundPage,
})

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: lazyRouteComponent(() => import('./pages/home/home-page.tsx'), 'HomePage'),
})

const fleet = createRoute({
  getParentRoute: () => root,
  path: '/fleet',
  validateSearch: only(parseFleetSearch),
  loaderDeps: ({ search }: { search: FleetSearch }) => ({ filter: filterOf(search) }),
  loader: ({ context, deps }) => prefetchFleet(context.client, deps.filter),
  component: lazyRouteComponent(() => import('./pages/fleet/fleet-page.tsx'), 'FleetPage'),
})

const cluster = createRoute({
  getParentRoute: () => root,
  path: '/clusters/$cluster',
  validateSearch: only(parseClusterSearch),
  component: lazyRouteComponent(() => import('./pages/cluster/cluster-page.tsx'), 'ClusterPage'),
})

const rollouts = createRoute({
  getParentRoute: () => root,
  path: '/rollouts',
  validateSearch: only(parseRolloutSearch),
  component: lazyRouteComponent(() => import('./pages/rollouts/rollouts-page.tsx'), 'RolloutsPage'),
})

const newRollout = createRoute({
  getParentRoute: () => root,
  path: '/rollouts/new',
  validateSearch: only(parseStartSearch),
  component: lazyRouteComponent(() => import('./pages/rollouts/start-page.tsx'), 'StartPage'),
})

const rollout = createRoute({
  getParentRoute: () => root,
  path: '/rollouts/$rollout',
  component: lazyRouteComponent(() => import('./pages/rollouts/rollout-page.tsx'), 'RolloutPage'),
})

const changes = createRoute({
  getParentRoute: () => root,
  path: '/changes',
  validateSearch: only(parseChangeSearch),
  component: lazyRouteComponent(() => import('./pages/changes/changes-page.tsx'), 'ChangesPage'),
})

const change = createRoute({
  getParentRoute: () => root,
  path: '/changes/$revision',
  validateSearch: only(parseChangePage),
  component: lazyRouteComponent(() => import('./pages/changes/change-page.tsx'), 'ChangePage'),
})

const catalog = createRoute({
  getParentRoute: () => root,
  path: '/catalog',
  validateSearch: only(parseCatalogSearch),
  component: lazyRouteComponent(() => import('./pages/catalog/catalog-page.tsx'), 'CatalogPage'),
})

const definition = createRoute({
  getParentRoute: () => root,
  path: '/catalog/$type/$id',
  component: lazyRouteComponent(() => import('./pages/catalog/definition-page.tsx'), 'DefinitionPage'),
})

const access = createRoute({
  getParentRoute: () => root,
  path: '/access',
  component: lazyRouteComponent(() => import('./pages/access/access-page.tsx'), 'AccessPage'),
})

const system = createRoute({
  getParentRoute: () => root,
  path: '/system',
  component: lazyRouteComponent(() => import('./pages/system/system-page.tsx'), 'SystemPage'),
})

const routeTree = root.addChildren([
  ...[home, fleet, cluster, catalog, definition],
  ...[rollouts, newRollout, rollout, changes, change, access, system],
])

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
