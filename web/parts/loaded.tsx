// A query on the page: a skeleton until it is there, the refusal when it fails, and the data with its age.
import { Group, Skeleton, Stack } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { atServer } from '../api/server-clock.ts'
import { Age } from './age.tsx'
import { ProblemNotice } from './problem-notice.tsx'

interface LoadedProps<T> {
  readonly query: Pick<UseQueryResult<T>, 'data' | 'error'> & { readonly refetch: () => Promise<unknown> }
  readonly lines?: number
  readonly children: (data: T) => ReactNode
}

/** Data that cannot be read again stays, with the problem above it. */
export function Loaded<T>({ query, lines = 4, children }: LoadedProps<T>) {
  const { data, error, refetch } = query
  const notice = error && <ProblemNotice error={error} onRetry={() => void refetch()} />
  if (data !== undefined)
    return (
      <>
        {notice}
        {children(data)}
      </>
    )
  if (notice) return notice
  return (
    <Stack gap="xs" p="sm" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, line) => `line ${line}`).map((line) => (
        <Skeleton key={line} height={14} />
      ))}
    </Stack>
  )
}

/** How old the figures of a query are. */
export function AsOf({
  query,
  staleAfterMs,
}: {
  readonly query: Pick<UseQueryResult, 'dataUpdatedAt'>
  readonly staleAfterMs: number
}) {
  if (query.dataUpdatedAt === 0) return null
  return (
    <Group gap={4} fz="xs" c="dimmed" wrap="nowrap">
      read <Age at={atServer(query.dataUpdatedAt)} staleAfterMs={staleAfterMs} />
    </Group>
  )
}
