// Every read of the console, once: a number that two pages show comes from one query. Keys begin with a topic.
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { Attention } from '../../src/api/attention-schema.ts'
import type { ConsoleSettings } from '../../src/api/console-settings.ts'
import type { ShownRollout } from '../../src/api/rollout-schema.ts'
import type { ClusterStatus, FleetStatus } from '../../src/api/status-schema.ts'
import type { VersionList } from '../../src/api/versions-schema.ts'
import type { CallerIdentity, Revision } from '../../src/api/wire-types.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { RolloutState } from '../../src/domain/rollouts/rollout.ts'
import { pathOf, type QueryValues, type Reply, send } from './client.ts'

/** The states of a rollout that has not ended. */
const ACTIVE = ['running', 'paused', 'baking', 'pending'] as const satisfies readonly RolloutState[]

/** What events of the service make out of date; the first part of every key. */
export type Topic = 'status' | 'revisions' | 'rollouts' | 'documents' | 'tokens' | 'session'

/** Clusters poll all the time, and no event tells of that: this old may a status on a screen become. */
export const STATUS_REFRESH_MS = 15_000

export interface FleetFilter {
  /** A part of the id. */
  readonly q?: string | undefined
  readonly selector?: string | undefined
  readonly environment?: string | undefined
  readonly contact?: string | undefined
  readonly delivery?: string | undefined
  readonly health?: string | undefined
  readonly sort?: string | undefined
}

export interface Page {
  readonly offset: number
  readonly limit: number
}

export type RevisionFilter = Readonly<Partial<Record<'actor' | 'type' | 'id' | 'cluster' | 'q', string>>>

async function read<T>(path: string, query: QueryValues, signal: AbortSignal): Promise<T> {
  return (await send<T>({ method: 'GET', path, query, signal })).body
}

export const queries = {
  settings: () =>
    queryOptions({
      queryKey: ['settings'],
      queryFn: ({ signal }) => read<ConsoleSettings>('/console/settings.json', {}, signal),
      staleTime: Number.POSITIVE_INFINITY,
    }),
  whoami: () =>
    queryOptions({
      queryKey: ['session', 'whoami'],
      queryFn: ({ signal }) => read<CallerIdentity>('/whoami', {}, signal),
    }),
  fleet: (filter: FleetFilter, { offset, limit }: Page) =>
    queryOptions({
      queryKey: ['status', 'fleet', filter, offset, limit],
      queryFn: ({ signal }) => read<FleetStatus>('/status', { ...filter, offset, limit }, signal),
      placeholderData: keepPreviousData,
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** Ids that hold a text, for whoever types one. */
  clusterNames: (q: string, limit: number) =>
    queryOptions({
      queryKey: ['status', 'names', q, limit],
      queryFn: async ({ signal }) =>
        (await read<FleetStatus>('/status', { q, limit }, signal)).clusters.map(({ cluster }) => cluster),
      placeholderData: keepPreviousData,
    }),
  attention: (limit: number) =>
    queryOptions({
      queryKey: ['status', 'attention', limit],
      queryFn: ({ signal }) => read<Attention>('/status/attention', { limit }, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** `type` is that of clusters. */
  clusterStatus: (type: string, id: string) =>
    queryOptions({
      queryKey: ['status', 'cluster', id],
      queryFn: ({ signal }) => read<ClusterStatus>(pathOf(type, id, 'status'), {}, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  versions: (type: string, id: string) =>
    queryOptions({
      queryKey: ['status', 'versions', type, id],
      queryFn: ({ signal }) => read<VersionList>(pathOf(type, id, 'versions'), {}, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** With its ETag, for writes that must not overwrite what somebody else wrote. */
  document: (type: string, id: string) =>
    queryOptions({
      queryKey: ['documents', type, id],
      queryFn: ({ signal }): Promise<Reply<JsonObject>> =>
        send<JsonObject>({ method: 'GET', path: pathOf(type, id), signal }),
    }),
  documents: (type: string, page: Page, filter: QueryValues = {}) =>
    queryOptions({
      queryKey: ['documents', type, 'list', filter, page.offset, page.limit],
      queryFn: ({ signal }): Promise<Reply<JsonObject[]>> =>
        send<JsonObject[]>({ method: 'GET', path: pathOf(type), query: { ...filter, ...page }, signal }),
      placeholderData: keepPreviousData,
    }),
  revisions: (filter: RevisionFilter, limit: number) =>
    queryOptions({
      queryKey: ['revisions', 'list', filter, limit],
      queryFn: ({ signal }) => read<Revision[]>('/revisions', { ...filter, limit }, signal),
    }),
  rollouts: (limit: number) =>
    queryOptions({
      queryKey: ['rollouts', 'list', limit],
      queryFn: ({ signal }) => read<ShownRollout[]>('/rollouts', { limit }, signal),
    }),
  /** Those that have not ended. */
  activeRollouts: () =>
    queryOptions({
      queryKey: ['rollouts', 'active'],
      queryFn: async ({ signal }) => {
        const lists = ACTIVE.map((state) => read<ShownRollout[]>('/rollouts', { state }, signal))
        return (await Promise.all(lists)).flat()
      },
    }),
}
