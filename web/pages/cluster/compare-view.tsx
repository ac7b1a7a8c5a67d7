// What this cluster gets differently than at another time, or than another cluster: input by input, field by field.
import { Button, Group, Text } from '@mantine/core'
import { useQueries } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { differingInputs, type InputsDifference } from '../../../src/domain/delivery/differing-inputs.ts'
import { pathOf } from '../../api/client.ts'
import type { ClusterSearch } from '../../api/cluster-search.ts'
import { type ClusterInputs, queries } from '../../api/queries.ts'
import { FieldChanges } from '../../parts/changed-document.tsx'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { ProblemNotice } from '../../parts/problem-notice.tsx'
import { TextFilter } from '../../parts/text-filter.tsx'
import { useEndpoints } from './use-endpoints.ts'

const route = getRouteApi('/clusters/$cluster')

export function CompareView({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const { past, other } = search
  const endpoints = useEndpoints()
  const set = (name: 'past' | 'other') => (value: string | undefined) => {
    const { [name]: _, ...rest } = search
    void navigate({ search: (value === undefined ? rest : { ...rest, [name]: value }) as ClusterSearch })
  }
  const at = past === undefined ? '' : ` --at ${inShell(past)}`
  return (
    <>
      <Group gap="sm" align="flex-end">
        <TextFilter label="With the cluster" placeholder="itself" value={other} onChange={set('other')} />
        <TextFilter
          label={other === undefined ? 'As it was at' : 'Both as they were at'}
          placeholder="a revision, or a time"
          value={past}
          onChange={set('past')}
        />
        {(past ?? other) !== undefined && (
          <>
            <CopyAs
              call={
                other === undefined
                  ? {
                      method: 'GET',
                      path: '/revisions/compare',
                      query: { from: past, selector: `id=${cluster}` },
                    }
                  : {
                      method: 'GET',
                      path: pathOf(type, other, 'inputs', endpoints[0] ?? ''),
                      query: { at: past },
                    }
              }
              cli={`cluster diff ${inShell(cluster)}${other === undefined ? '' : ` ${inShell(other)}`}${at}`}
            />
            <Button
              variant="default"
              onClick={() => {
                const { past: _, other: __, ...rest } = search
                void navigate({ search: rest })
              }}
            >
              Clear
            </Button>
          </>
        )}
      </Group>
      {past === undefined && other === undefined ? (
        <Panel title="Compare">
          <Empty title="With what?">
            Name another cluster, or a revision or a time of the past. What they get is compared, whatever it
            comes from.
          </Empty>
        </Panel>
      ) : (
        <Differences type={type} {...sidesOf(cluster, past, other)} />
      )}
    </>
  )
}

interface Side {
  readonly cluster: string
  readonly at: string | undefined
}

interface Sides {
  readonly one: Side
  readonly two: Side
}

/** Alone: then and now. With another: this one and that one, at the same time. */
function sidesOf(cluster: string, at: string | undefined, other: string | undefined): Sides {
  return other === undefined
    ? { one: { cluster, at }, two: { cluster, at: undefined } }
    : { one: { cluster, at }, two: { cluster: other, at } }
}

function Differences({ type, one, two }: Sides & { readonly type: string }) {
  const endpoints = useEndpoints()
  const read = ({ cluster, at }: Side) => endpoints.map((each) => queries.inputs(type, cluster, each, at))
  const first = useQueries({ queries: read(one) })
  const second = useQueries({ queries: read(two) })
  const failed = [...first, ...second].find(({ error }) => error)
  if (failed?.error) return <ProblemNotice error={failed.error} onRetry={() => void failed.refetch()} />
  const nameOf = ({ cluster, at }: Side): string => `${cluster} ${at === undefined ? 'now' : `at ${at}`}`
  return (
    <Panel title={`From ${nameOf(one)} to ${nameOf(two)}`}>
      {endpoints.map((endpoint, place) => (
        <Endpoint key={endpoint} name={endpoint} one={first[place]?.data} two={second[place]?.data} />
      ))}
    </Panel>
  )
}

interface EndpointProps {
  readonly name: string
  readonly one: ClusterInputs | undefined
  readonly two: ClusterInputs | undefined
}

function Endpoint({ name, one, two }: EndpointProps) {
  const difference = one && two && differingInputs(one.inputs, two.inputs)
  return (
    <section aria-label={`Differences of ${name}`}>
      <Text size="sm" fw={600} px="sm" pt="sm">
        {name}
      </Text>
      <Text size="sm" px="sm" pb="sm" component="div">
        {difference ? <Difference difference={difference} /> : 'reading…'}
      </Text>
    </section>
  )
}

function Difference({ difference: { added, removed, changed } }: { readonly difference: InputsDifference }) {
  if (added.length + removed.length + changed.length === 0) return 'no difference'
  return (
    <>
      {removed.map((id) => (
        <div key={id}>− {id}: only the first has it</div>
      ))}
      {added.map((id) => (
        <div key={id}>+ {id}: only the second has it</div>
      ))}
      {changed.map(({ id, fields }) => (
        <div key={id}>
          <b>{id}</b>
          <FieldChanges fields={fields} />
        </div>
      ))}
    </>
  )
}
