// What could be typed next, as the server knows it: ids, labels, revisions, rollouts.
import type { ShownRollout } from '../../api/rollout-schema.ts'
import type { Revision } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { isActive } from '../../domain/rollouts/rollout.ts'
import type { Tools } from '../cli-command.ts'
import { openApi } from './api-client.ts'
import { clusterNoun } from './nouns.ts'
import { pathOf, ROLLOUT_ROUTES, TOKEN_ROUTES } from './read-documents.ts'
import { Refusal } from './refusal.ts'
import { tokenRenewal } from './token-renewal.ts'

export type Candidate = readonly [name: string, about?: string]

/** Clusters whose labels are offered. */
const MOST_CLUSTERS = 500
/** More than anybody looks through: the server is told what is typed so far. */
const MOST_IDS = 200
/** Completion is interactive: nobody waits longer for it. */
const TIMEOUT_MS = 2000

/** The last of several values that are joined by commas. */
export async function joined(
  current: string,
  find: (typed: string) => Promise<Candidate[]>,
): Promise<Candidate[]> {
  const at = current.lastIndexOf(',') + 1
  const before = current.slice(0, at)
  const found = await find(current.slice(at))
  return found.map(([name, ...about]): Candidate => [`${before}${name}`, ...about])
}

/** The newest revisions, with what they were for. */
export function revisions(tools: Tools): Promise<Candidate[]> {
  return candidatesAt(tools, '/revisions?limit=20', (body: Revision[]) =>
    body.map(({ revision, message, operation }) => [String(revision), message ?? operation]),
  )
}

/** Keys of labels, and after an equals sign the values that clusters have. */
export function labels(tools: Tools, current: string, isSelector: boolean): Promise<Candidate[]> {
  const { name, cluster } = clusterNoun(tools.nouns)
  return joined(current, (typed) =>
    candidatesAt(tools, `/${name}?limit=${MOST_CLUSTERS}`, (body: JsonObject[]) => {
      const pairs = body.flatMap((document) => [
        ...Object.entries((document[cluster.labels ?? 'labels'] ?? {}) as JsonObject),
        ...(cluster.environment ? [[cluster.environment, document[cluster.environment] ?? ''] as const] : []),
      ])
      const [key = '', value] = typed.split('=')
      const found =
        isSelector && value !== undefined
          ? pairs.flatMap(([each, text]) => (each === key ? [`${key}=${text}`] : []))
          : pairs.map(([each]) => (isSelector ? `${each}=` : each))
      return [...new Set(found)].toSorted().map((each) => [each])
    }),
  )
}

/** The ids of a list, or the names of tokens, which only those may see who may change them. */
export function ids(tools: Tools, list: string, typed = '', isDeleted = false): Promise<Candidate[]> {
  const query = new URLSearchParams({
    limit: String(MOST_IDS),
    ...(typed !== '' && { id_prefix: typed }),
    ...(isDeleted && { deleted: 'true' }),
  })
  if (list !== TOKEN_ROUTES.name)
    return candidatesAt(tools, `/${list}?${query}`, (body: { id: string }[]) => body.map(({ id }) => [id]), {
      otherwise: `/${list}?${withoutPrefix(query)}`,
    })
  const read = (body: { name: string; role: string }[]): Candidate[] =>
    body.map(({ name, role }) => [name, role])
  return candidatesAt(tools, `/${list}`, read, { isForWriters: true })
}

function withoutPrefix(query: URLSearchParams): URLSearchParams {
  const rest = new URLSearchParams(query)
  rest.delete('id_prefix')
  return rest
}

/** Rollouts with what they are about: all of the newest, or those that have not ended. */
export function rollouts(tools: Tools, { onlyActive = false } = {}): Promise<Candidate[]> {
  return candidatesAt(tools, `/${ROLLOUT_ROUTES.name}`, (body: ShownRollout[]) =>
    body
      .filter((each) => !onlyActive || isActive(each))
      .map(({ id, state, message, operation }) => [id, `${state}: ${message ?? operation}`]),
  )
}

export function wavesOf(tools: Tools, rollout: string): Promise<Candidate[]> {
  return candidatesAt(tools, pathOf(ROLLOUT_ROUTES, rollout), ({ waves }: ShownRollout) =>
    waves.map(({ name, state }) => [name, state]),
  )
}

/** What the body of a response offers; nothing where there is none. */
export async function candidatesAt<Body>(
  { context, settings, isServerUnreachable }: Tools,
  path: string,
  read: (body: Body) => Candidate[],
  { isForWriters = false, otherwise }: { isForWriters?: boolean; otherwise?: string } = {},
): Promise<Candidate[]> {
  if (isServerUnreachable) return []
  const { terminal, version } = context
  const { env } = terminal
  try {
    const brief = { ...settings(), timeoutMs: TIMEOUT_MS }
    const api = openApi({ settings: brief, env, version, tries: 1, renew: tokenRenewal(context), note() {} })
    try {
      // One thing has no pages.
      const query = path.lastIndexOf('/') === 0 && !path.includes('?') ? { limit: MOST_IDS } : {}
      const ask = (place: string) =>
        isForWriters ? api.getAsWriter(place, { query }) : api.get(place, { query })
      const { body } = await ask(path).catch((error) => {
        // A server of an earlier release does not know every parameter.
        if (otherwise === undefined || !(error instanceof Refusal && error.status === 400)) throw error
        return ask(otherwise)
      })
      return read(body)
    } finally {
      api.close()
    }
  } catch {
    return []
  }
}
