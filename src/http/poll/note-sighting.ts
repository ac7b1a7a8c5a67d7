// What the answer to a poll says of its cluster.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Result } from '../../base/problem.ts'
import { EMPTY_ANSWER } from '../../domain/delivery/render-inputs.ts'
import type { Report } from '../../domain/status/parse-report.ts'
import type { Identity } from '../auth/identity.ts'
import type { RequestHead } from '../direct/parse-poll.ts'
import type { Service } from '../service.ts'
import type { SentAnswer } from './answer.ts'
import { noteRefusal } from './polled-cluster.ts'

export interface Poll {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly dns: string
  readonly endpoint: string | undefined
  readonly started: number
}

/** What was served, to which cluster at which endpoint, and of which revision. */
export interface ServedAnswer extends SentAnswer {
  /** The id of the cluster; undefined for the list of clusters, like the endpoint. */
  readonly cluster: string | undefined
  readonly endpoint: string | undefined
  /** The revision from which on the cluster is served from its present view. */
  readonly servedFrom?: number
  /** What the cluster says it has applied, where it reported that. */
  readonly report?: Report
}

/** Notes what a cluster was served or reported, or that a request in its name was refused. Every poll calls it. */
export function noteSighting(
  service: Service,
  { request, dns, endpoint }: Pick<Poll, 'dns' | 'endpoint'> & { readonly request: RequestHead },
  identity: Identity | undefined,
  result: Result<ServedAnswer>,
): void {
  if (!result.ok) return void noteRefusal(service, dns, result.problem)
  const { fleet } = service.engine.fleet
  const { cluster, body, digest, revision, report, servedFrom } = result.value
  if (cluster === undefined || endpoint === undefined) return
  const agent = request.headers['user-agent']
  if (report) return void fleet.noteReport(cluster, report, agent)
  const mark = body === EMPTY_ANSWER.text ? undefined : digest
  fleet.notePoll(cluster, endpoint, mark, revision, agent, identity?.name ?? '', servedFrom)
}
