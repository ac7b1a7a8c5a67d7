// The cluster that a request polls or reports for: how it is found, and what is noted when that is refused.
import { fail, type Problem, type Result, succeed } from '../../base/problem.ts'
import type { Grant } from '../../domain/access/grant.ts'
import { refusePollFor } from '../../domain/access/poll-access.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { STATUS } from '../request/problem-response.ts'
import type { Service } from '../service.ts'

/** Finds deleted clusters too. The caller may poll at all. */
export function findPolled({ engine, types }: Service, grant: Grant, dns: string): Result<Entry> {
  const { state } = engine
  const found = state.clusterByDns(dns)
  const foreign = refusePollFor(types, state, grant, dns, found)
  if (foreign) return fail(foreign)
  // Flux keeps what it has on a 404; an empty list would make it delete everything.
  if (found) return succeed(found)
  const message = `no cluster with the DNS name "${dns}"`
  return fail({ code: 'not_found', reason: 'unknown_cluster', message })
}

/** Problems that a cluster keeps meeting until somebody gives it another token or another bundle. */
const REFUSALS: readonly Problem['code'][] = ['unauthorized', 'forbidden', 'not_found']

/** Notes that a request in a cluster's name was refused; problems of the service itself are no refusals. */
export function noteRefusal({ engine }: Service, dns: string, { code, reason }: Problem): void {
  if (!REFUSALS.includes(code)) return
  const cluster = engine.state.clusterByDns(dns)
  if (cluster && !cluster.deleted) engine.fleet.fleet.noteRefusal(cluster.id, STATUS[code], reason ?? code)
}
