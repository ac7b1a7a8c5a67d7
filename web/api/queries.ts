// Every read of the console, once: a number that two pages show comes from one query. Keys begin with a topic.
import { keepPreviousData, queryOptions } from '@tanstack/react-query'
import type { Attention } from '../../src/api/attention-schema.ts'
import type { ConsoleSettings } from '../../src/api/console-settings.ts'
import type { Propagation } from '../../src/api/propagation-schema.ts'
import type { Verification } from '../../src/api/revision-schema.ts'
import type { ShownHold, ShownMember, ShownRollout } from '../../src/api/rollout-schema.ts'
import type { ServiceStatus } from '../../src/api/service-schema.ts'
import type { ClusterStatus, FleetStatus } from '../../src/api/status-schema.ts'
import type { AssignedCluster, VersionList } from '../../src/api/versions-schema.ts'
import type {
  CallerIdentity,
  Explanation,
  Revision,
  RevisionWithImpact,
  ShownToken,
} from '../../src/api/wire-types.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { ReceivedInput } from '../../src/domain/delivery/differing-inputs.ts'
import type { RolloutState } from '../../src/domain/rollouts/rollout.ts'
import { ApiProblem, open, pathOf, type QueryValues, type Reply, read, send } from './client.ts'
import { parseMetrics } from './parse-metrics.ts'
import type { Readiness } from './readiness.ts'

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

/** The first page of the fleet has this many rows; the counts beside it come with it. */
export const FLEET_PAGE = 100

export interface Page {
  readonly offset: number
  readonly limit: number
}

export const REVISION_FILTERS = ['actor', 'type', 'id', 'cluster', 'q', 'since', 'until', 'before'] as const
export type RevisionFilter = Readonly<Partial<Record<(typeof REVISION_FILTERS)[number], string>>>

/** What a cluster gets, as it polls for it. */
export interface ClusterInputs {
  readonly inputs: readonly ReceivedInput[]
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
  /** The counts of each environment by the value of a label. */
  fleetGroups: (filter: FleetFilter, by: string) =>
    queryOptions({
      queryKey: ['status', 'groups', filter, by],
      queryFn: ({ signal }) => read<FleetStatus>('/status', { ...filter, by, limit: 0 }, signal),
      placeholderData: keepPreviousData,
      refetchInterval: STATUS_REFRESH_MS,
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
  /** The ids that a filter leaves, for an action on exactly these; `total` says whether they are all. */
  fleetIds: (filter: FleetFilter, limit: number) =>
    queryOptions({
      queryKey: ['status', 'ids', filter, limit],
      queryFn: async ({ signal }) => {
        const { total, clusters } = await read<FleetStatus>('/status', { ...filter, limit }, signal)
        return { total, ids: clusters.map(({ cluster }) => cluster) }
      },
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
  /** It never changes; what it meant for clusters neither. */
  revision: (revision: number, { offset, limit }: Page) =>
    queryOptions({
      queryKey: ['revision', revision, offset, limit],
      queryFn: ({ signal }) =>
        read<RevisionWithImpact>(
          pathOf('revisions', String(revision)),
          { offset, limit, impact_limit: 0 },
          signal,
        ),
      staleTime: Number.POSITIVE_INFINITY,
      placeholderData: keepPreviousData,
    }),
  propagation: (revision: number) =>
    queryOptions({
      queryKey: ['status', 'propagation', revision],
      queryFn: ({ signal }) =>
        read<Propagation>(pathOf('revisions', String(revision), 'propagation'), {}, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** It takes a while: only when somebody asks for it. */
  verification: () =>
    queryOptions({
      queryKey: ['verification'],
      queryFn: ({ signal }) => read<Verification>('/revisions/verify', {}, signal),
      enabled: false,
    }),
  rollouts: (state: string | undefined, page: Page) =>
    queryOptions({
      queryKey: ['rollouts', 'list', state, page.offset, page.limit],
      queryFn: ({ signal }): Promise<Reply<ShownRollout[]>> =>
        send<ShownRollout[]>({ method: 'GET', path: '/rollouts', query: { state, ...page }, signal }),
      refetchInterval: STATUS_REFRESH_MS,
      placeholderData: keepPreviousData,
    }),
  rollout: (id: string) =>
    queryOptions({
      queryKey: ['rollouts', 'one', id],
      queryFn: ({ signal }) => read<ShownRollout>(pathOf('rollouts', id), {}, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** Of one that goes on. */
  rolloutMembers: (id: string, wave: string, limit: number) =>
    queryOptions({
      queryKey: ['rollouts', 'members', id, wave, limit],
      queryFn: ({ signal }) =>
        read<ShownMember[]>(pathOf('rollouts', id, 'members'), { wave, limit }, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** What a cluster gets; `type` is that of clusters, `at` a revision or a time. */
  inputs: (type: string, id: string, endpoint: string, at?: string) =>
    queryOptions({
      queryKey: ['documents', type, id, 'inputs', endpoint, at],
      queryFn: ({ signal }) => read<ClusterInputs>(pathOf(type, id, 'inputs', endpoint), { at }, signal),
    }),
  explanation: (type: string, id: string, endpoint: string, at?: string) =>
    queryOptions({
      queryKey: ['documents', type, id, 'explanation', endpoint, at],
      queryFn: ({ signal }) =>
        read<Explanation>(pathOf(type, id, 'inputs', endpoint), { at, explain: true }, signal),
    }),
  holds: (limit: number) =>
    queryOptions({
      queryKey: ['documents', 'holds', 'list', limit],
      queryFn: ({ signal }): Promise<Reply<ShownHold[]>> =>
        send<ShownHold[]>({ method: 'GET', path: '/holds', query: { limit }, signal }),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** Null where the cluster is not held. */
  hold: (cluster: string) =>
    queryOptions({
      queryKey: ['documents', 'holds', cluster],
      queryFn: async ({ signal }): Promise<Reply<ShownHold> | null> => {
        try {
          return await send<ShownHold>({ method: 'GET', path: pathOf('holds', cluster), signal })
        } catch (error) {
          if (error instanceof ApiProblem && error.status === 404) return null
          throw error
        }
      },
    }),
  /** Clusters that are assigned a document. */
  assigned: (type: string, id: string, page: Page) =>
    queryOptions({
      queryKey: ['status', 'assigned', type, id, page.offset, page.limit],
      queryFn: ({ signal }): Promise<Reply<AssignedCluster[]>> =>
        send<AssignedCluster[]>({
          method: 'GET',
          path: pathOf(type, id, 'clusters'),
          query: { ...page },
          signal,
        }),
      placeholderData: keepPreviousData,
    }),
  tokens: () =>
    queryOptions({
      queryKey: ['tokens', 'list'],
      queryFn: ({ signal }) => read<ShownToken[]>('/tokens', {}, signal),
    }),
  /** Whether the service can serve, as its probe says. */
  ready: () =>
    queryOptions({
      queryKey: ['status', 'ready'],
      queryFn: async ({ signal }): Promise<Readiness> => {
        try {
          return await read<Readiness>('/ready', {}, signal)
        } catch (error) {
          if (error instanceof ApiProblem && error.status === 503)
            return { status: 'unavailable', reason: error.message }
          throw error
        }
      },
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** The processes on the store, and the templates of this one. */
  service: () =>
    queryOptions({
      queryKey: ['status', 'service'],
      queryFn: ({ signal }) => read<ServiceStatus>('/status/service', {}, signal),
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** The gauges and counters of the process, by name; null where they are on another port. */
  metrics: () =>
    queryOptions({
      queryKey: ['status', 'metrics'],
      queryFn: async ({ signal }): Promise<ReadonlyMap<string, number> | null> => {
        try {
          return parseMetrics(await (await open({ method: 'GET', path: '/metrics', signal })).text())
        } catch (error) {
          if (error instanceof ApiProblem && error.status === 404) return null
          throw error
        }
      },
      refetchInterval: STATUS_REFRESH_MS,
    }),
  /** Those that have not ended. */
  activeRollouts: () =>
    queryOptions({
      queryKey: ['rollouts', 'active'],
      queryFn: async ({ signal }) => {
        const lists = ACTIVE.map((state) => read<ShownRollout[]>('/rollouts', { state }, signal))
        return (await Promise.all(lists)).flat()
      },
      refetchInterval: STATUS_REFRESH_MS,
    }),
}
