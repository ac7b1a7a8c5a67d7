// Reading what clusters are doing: all pages of their status, and what older servers do not have.
import { STATUS_PAGES } from '../../api/limits.ts'
import type { FleetStatus, StatusLine } from '../../api/status-schema.ts'
import { EXIT, Failure } from '../failure.ts'
import type { ApiResponse, Call } from '../server/api.ts'
import { readPages } from '../server/read-pages.ts'
import { Refusal } from '../server/refusal.ts'
import { warningsIn } from '../server/response-warnings.ts'
import type { Session } from '../session.ts'

/** How an older server, and one that this caller may not ask, refuses. */
const UNAVAILABLE = [403, 404, 405]

interface Options {
  readonly query?: Call['query']
  /** Clusters to read at most. */
  readonly limit?: number | undefined
}

/** The status of clusters; undefined where the server has none, or this caller may not read it. */
export function findStatus(
  { api }: Pick<Session, 'api'>,
  options: Options = {},
): Promise<FleetStatus | undefined> {
  return statusAt(options, (query) => api.get('/status', { query, expect: UNAVAILABLE }))
}

export async function readStatus(session: Session, options: Options = {}): Promise<FleetStatus> {
  const get = async (query: Call['query']): Promise<ApiResponse> => {
    const response = await getNew(session, '/status', query)
    // Warnings are about the selector, and the same on every page.
    if (query?.offset === 0) for (const warning of warningsIn(response)) session.warn(warning)
    return response
  }
  const status = await statusAt(options, get)
  if (status) return status
  throw new Failure(EXIT.unreachable, `what answers at ${session.api.url.origin} is no status of clusters`)
}

async function statusAt(
  { query, limit }: Options,
  get: (query: Call['query']) => Promise<ApiResponse>,
): Promise<FleetStatus | undefined> {
  const clusters: StatusLine[] = []
  let first: FleetStatus | undefined
  const pages = readPages<StatusLine>(
    async ({ limit: size, offset }) => {
      const response = await get({ ...query, limit: size, offset })
      if (!Array.isArray(response.body?.clusters)) return { ...response, headers: {}, body: [] }
      first ??= response.body
      return { ...response, body: response.body.clusters }
    },
    { size: STATUS_PAGES.max, limit },
  )
  for await (const { items } of pages) for (const line of items) clusters.push(line)
  return first && { ...first, clusters }
}

/** Reads from a route that older servers do not have, and says so where it is not there. */
export async function getNew(
  { api }: Pick<Session, 'api'>,
  path: string,
  query: Call['query'] = {},
): Promise<ApiResponse> {
  try {
    return await api.get(path, { query })
  } catch (error) {
    if (!(error instanceof Refusal && error.reason === 'no_route')) throw error
    throw new Failure(EXIT.refused, `${api.url.origin} does not tell this: its version is too old`, {
      details: error.details,
    })
  }
}
