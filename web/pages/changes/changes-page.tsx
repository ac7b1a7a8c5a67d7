// Everything that was ever changed, the newest first, by whom and why; filters are the URL.
import { Button, Group, Select, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link } from '@tanstack/react-router'
import { HOLDS } from '../../../src/domain/rollouts/hold.ts'
import { ROLLOUTS } from '../../../src/domain/rollouts/rollout.ts'
import { ApiProblem } from '../../api/client.ts'
import { queries, type RevisionFilter } from '../../api/queries.ts'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Page, Panel } from '../../parts/page.tsx'
import { TextFilter } from '../../parts/text-filter.tsx'
import classes from './changes-page.module.css'
import { Timeline } from './timeline.tsx'
import { VerifyPanel } from './verify-panel.tsx'

const SHOWN = 50
const route = getRouteApi('/changes')

export function ChangesPage() {
  const search = route.useSearch()
  const query = useQuery(queries.revisions(search, SHOWN))
  const { before: _, q, ...others } = search
  const asked = Object.entries({ ...others, ...(q !== undefined && { grep: q }) })
  const flags = asked.map(([name, value]) => ` --${name} ${inShell(value)}`).join('')
  return (
    <Page
      title="Changes"
      actions={
        <CopyAs
          call={{ method: 'GET', path: '/revisions', query: { ...search, limit: SHOWN } }}
          cli={`log${flags} --limit ${SHOWN}`}
        />
      }
    >
      <Filters search={search} error={query.error} />
      <Panel title="Timeline">
        <Loaded query={query} lines={12}>
          {(revisions) =>
            revisions.length === 0 ? (
              <Empty title="No change matches">
                Every write is one: with who made it, when and why. Fewer filters show more of them.
              </Empty>
            ) : (
              <Timeline revisions={revisions} />
            )
          }
        </Loaded>
        <Pages search={search} last={query.data?.at(-1)?.revision} isFull={query.data?.length === SHOWN} />
      </Panel>
      <VerifyPanel />
    </Page>
  )
}

function Filters({ search, error }: { readonly search: RevisionFilter; readonly error: unknown }) {
  const navigate = route.useNavigate()
  const settings = useQuery(queries.settings())
  const wrong = error instanceof ApiProblem && error.status === 400 ? error.body.details : undefined
  /** Another filter begins with the newest again. */
  const set = (name: keyof RevisionFilter) => (value: string | undefined) => {
    const { before: _, [name]: __, ...rest } = search
    void navigate({ search: value === undefined ? rest : { ...rest, [name]: value } })
  }
  const box = (name: keyof RevisionFilter, label: string, placeholder: string) => (
    <TextFilter
      label={label}
      value={search[name]}
      placeholder={placeholder}
      error={wrong?.find(({ path }) => path === `?${name}`)?.message}
      onChange={set(name)}
    />
  )
  const types = [...(settings.data?.types.map(({ name }) => name) ?? []), ROLLOUTS, HOLDS]
  return (
    <div className={classes.filters}>
      {box('q', 'Text', 'in the reason or the operation')}
      {box('actor', 'Who', 'name of an actor')}
      <Select
        label="Type"
        placeholder="any"
        data={types}
        value={search.type ?? null}
        onChange={(type) => set('type')(type ?? undefined)}
        clearable
        size="sm"
      />
      {box('id', 'Document', 'its id')}
      {box('cluster', 'Cluster', 'what it gets')}
      {box('since', 'Since', '2026-01-31T12:00:00Z')}
      {box('until', 'Until', '2026-01-31T12:00:00Z')}
    </div>
  )
}

interface PagesProps {
  readonly search: RevisionFilter
  readonly last: number | undefined
  readonly isFull: boolean
}

function Pages({ search, last, isFull }: PagesProps) {
  const { before, ...newest } = search
  return (
    <Group justify="space-between" p="sm">
      <Text size="xs" c="dimmed">
        {before === undefined ? 'the newest first' : `before #${before}`}
      </Text>
      <Group gap="xs">
        {before !== undefined && (
          <Button variant="default" renderRoot={(props) => <Link to="/changes" search={newest} {...props} />}>
            Newest
          </Button>
        )}
        {isFull && last !== undefined && (
          <Button
            variant="default"
            renderRoot={(props) => (
              <Link to="/changes" search={{ ...search, before: String(last) }} {...props} />
            )}
          >
            Older
          </Button>
        )}
      </Group>
    </Group>
  )
}
