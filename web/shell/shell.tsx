// The frame around all pages: navigation, search, who is logged in, whether the figures are live. Without a session: the login.
import { AppShell, Burger, Button, Group, Kbd, NavLink, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { spotlight } from '@mantine/spotlight'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useRouterState } from '@tanstack/react-router'
import { lazy, Suspense, useEffect } from 'react'
import { startLive } from '../api/live.ts'
import { queries } from '../api/queries.ts'
import { PAGES } from '../pages.ts'
import { Icon } from '../parts/icon.tsx'
import { ProblemNotice } from '../parts/problem-notice.tsx'
import { useSession } from '../session/session.ts'
import { ExpiryNotice } from './expiry-notice.tsx'
import { LiveMark } from './live-mark.tsx'
import { Palette } from './palette.tsx'
import classes from './shell.module.css'
import { usePages } from './use-pages.ts'
import { UserMenu } from './user-menu.tsx'

const LoginPage = lazy(async () => ({ default: (await import('../pages/login/login-page.tsx')).LoginPage }))

export function Shell() {
  const { token } = useSession()
  if (token !== undefined) return <Frame key={token} />
  return (
    <Suspense>
      <LoginPage />
    </Suspense>
  )
}

function Frame() {
  const client = useQueryClient()
  const [isOpen, { toggle, close }] = useDisclosure(false)
  const identity = useQuery(queries.whoami())
  useEffect(() => startLive(client), [client])
  return (
    <AppShell
      header={{ height: 48 }}
      navbar={{ width: 188, breakpoint: 'sm', collapsed: { mobile: !isOpen } }}
      transitionDuration={0}
    >
      <AppShell.Header className={classes.header ?? ''}>
        <a href="#main" className={classes.skip}>
          Skip to the page
        </a>
        <Group gap="sm" wrap="nowrap">
          <Burger opened={isOpen} onClick={toggle} hiddenFrom="sm" size="sm" aria-label="Navigation" />
          <Link to="/" className={classes.brand}>
            flux-resourceset
          </Link>
        </Group>
        <Button
          variant="default"
          className={classes.search ?? ''}
          onClick={spotlight.open}
          leftSection={<Icon name="search" size={14} />}
          rightSection={<Kbd size="xs">Ctrl K</Kbd>}
          aria-label="Search clusters, pages and actions"
        >
          <span className={classes.searchText}>Search</span>
        </Button>
        <Group gap="xs" wrap="nowrap">
          <LiveMark />
          <UserMenu />
        </Group>
      </AppShell.Header>
      <AppShell.Navbar className={classes.navbar ?? ''} aria-label="Pages">
        <Navigation onGo={close} />
        <Version />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1}>
        <ExpiryNotice />
        {identity.error ? (
          <ProblemNotice error={identity.error} onRetry={() => void identity.refetch()} />
        ) : (
          identity.data && <Outlet />
        )}
      </AppShell.Main>
      <Palette />
    </AppShell>
  )
}

function Navigation({ onGo }: { readonly onGo: () => void }) {
  const pages = usePages()
  const path = useRouterState({ select: ({ location }) => location.pathname })
  const active = PAGES.findLast((page) => (page.path === '/' ? path === '/' : path.startsWith(page.path)))
  return pages.map((page) => (
    <NavLink
      key={page.path}
      label={page.name}
      leftSection={<Icon name={page.icon} />}
      active={page === active}
      {...(page === active && { 'aria-current': 'page' as const })}
      renderRoot={(props) => <Link to={page.path} {...props} onClick={onGo} />}
    />
  ))
}

function Version() {
  const { data } = useQuery(queries.settings())
  if (!data) return null
  return (
    <Text size="xs" c="dimmed" className={classes.version ?? ''}>
      {data.version} · {data.mode}
      <br />
      <a href="/docs">API</a>
    </Text>
  )
}
