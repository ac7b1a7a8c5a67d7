// The previous and the next cluster of the filtered list that this one was opened from.
import { ActionIcon, Group, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { type FleetFilter, queries } from '../../api/queries.ts'
import { Icon } from '../../parts/icon.tsx'

interface NeighboursProps {
  readonly filter: FleetFilter
  /** The place of this cluster in the list when it was opened. */
  readonly at: number
}

export function Neighbours({ filter, at }: NeighboursProps) {
  const first = Math.max(0, at - 1)
  const { data } = useQuery(queries.fleet(filter, { offset: first, limit: 3 }))
  if (!data) return null
  const near = (index: number): string | undefined => data.clusters[index - first]?.cluster
  return (
    <Group gap={4} wrap="nowrap">
      <Step name="previous" cluster={at > 0 ? near(at - 1) : undefined} filter={filter} at={at - 1} />
      <Text size="xs" c="dimmed" component="span">
        {(at + 1).toLocaleString('en')} of {data.total.toLocaleString('en')}
      </Text>
      <Step name="next" cluster={near(at + 1)} filter={filter} at={at + 1} />
    </Group>
  )
}

interface StepProps extends NeighboursProps {
  readonly name: 'previous' | 'next'
  readonly cluster: string | undefined
}

function Step({ name, cluster, filter, at }: StepProps) {
  if (cluster === undefined)
    return (
      <ActionIcon variant="default" disabled aria-label={`No ${name} cluster`}>
        <Icon name={name} />
      </ActionIcon>
    )
  return (
    <ActionIcon
      variant="default"
      aria-label={`The ${name} cluster, ${cluster}`}
      renderRoot={(props) => (
        <Link to="/clusters/$cluster" params={{ cluster }} search={{ ...filter, at }} {...props} />
      )}
    >
      <Icon name={name} />
    </ActionIcon>
  )
}
