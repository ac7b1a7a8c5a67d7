// What the cluster gets at one endpoint, now or at another time, with where each value comes from and who set it.
import { Badge, Code, Group, Select, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import type { Explanation } from '../../../src/api/wire-types.ts'
import type { ExplainedField } from '../../../src/domain/delivery/explain-input.ts'
import { ApiProblem } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { RevisionLink } from '../../parts/revision-link.tsx'
import { TextFilter } from '../../parts/text-filter.tsx'
import classes from './inputs-view.module.css'
import { useEndpoints } from './use-endpoints.ts'

/** Inputs that are opened at once. */
const OPEN = 3
const SOURCES: Readonly<Record<ExplainedField['source'], string>> = {
  catalog: 'catalog',
  override: 'override of this cluster',
  patch: 'value of this cluster',
  cluster: 'its document',
  default: 'default of the type',
}
const route = getRouteApi('/clusters/$cluster')

export function InputsView({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const endpoints = useEndpoints()
  const { endpoint = endpoints[0] ?? '', past } = search
  const query = useQuery({
    ...queries.explanation(type, cluster, endpoint, past),
    enabled: endpoint !== '',
  })
  const { error } = query
  const wrong =
    error instanceof ApiProblem ? error.body.details?.find(({ path }) => path === '?at')?.message : undefined
  return (
    <>
      <Group gap="sm" align="flex-end">
        <Select
          label="Endpoint"
          data={[...endpoints]}
          value={endpoint}
          onChange={(chosen) => void navigate({ search: { ...search, ...(chosen && { endpoint: chosen }) } })}
          allowDeselect={false}
          size="sm"
        />
        <TextFilter
          label="As it was at"
          placeholder="now; or a revision, or a time"
          value={past}
          error={wrong}
          onChange={(at) => {
            const { past: _, ...rest } = search
            void navigate({ search: at === undefined ? rest : { ...rest, past: at } })
          }}
        />
        <CopyAs
          call={{
            method: 'GET',
            path: `/${type}/${encodeURIComponent(cluster)}/inputs/${endpoint}`,
            query: { explain: true, at: past },
          }}
          cli={`cluster inputs ${inShell(cluster)} ${endpoint} --explain${past ? ` --at ${inShell(past)}` : ''}`}
        />
      </Group>
      <Panel title={past === undefined ? 'Inputs now' : `Inputs at ${past}`}>
        <Loaded query={query} lines={10}>
          {(found) => <Inputs explanation={found} />}
        </Loaded>
      </Panel>
    </>
  )
}

function Inputs({ explanation: { inputs, endpoint } }: { readonly explanation: Explanation }) {
  if (inputs.length === 0)
    return (
      <Empty title={`It gets nothing at ${endpoint}`}>
        An empty list: Flux removes there whatever it rendered before.
      </Empty>
    )
  return inputs.map(({ id, fields }, place) => (
    <details key={id} className={classes.input} open={place < OPEN}>
      <summary>
        <b>{id}</b> <span className={classes.count}>{fields.length} values</span>
      </summary>
      <Facts
        label={`Values of ${id}`}
        head={['Field', 'Value', 'From', 'Set by', 'Why']}
        rows={fields.map((field) => ({ id: field.path, cells: cellsOf(field) }))}
      />
    </details>
  ))
}

function cellsOf({ path, value, source, document, revision, time, actor, message, ...rest }: ExplainedField) {
  const { rollout, held, left_out } = rest
  return [
    <Code key="path">{path}</Code>,
    <Code key="value" className={classes.value ?? ''}>
      {JSON.stringify(value)}
    </Code>,
    <Group key="from" gap={4}>
      <span title={document ?? ''}>{SOURCES[source]}</span>
      {rollout && <Badge variant="default">rollout {rollout}</Badge>}
      {held && <Badge variant="default">held</Badge>}
    </Group>,
    revision === null ? (
      'nobody'
    ) : (
      <span key="by">
        <RevisionLink revision={revision} /> {actor}, <Age at={time} />
      </span>
    ),
    <span key="why">
      {message ?? ''}
      {left_out?.map(({ id, why }) => (
        <Text key={id} size="xs" c="dimmed">
          does not wait for {id}: {why.replaceAll('_', ' ')}
        </Text>
      ))}
    </span>,
  ]
}
