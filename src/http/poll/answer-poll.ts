// What a poll of one cluster is answered with.
import { fail, type Result, succeed } from '../../base/problem.ts'
import { refusePolls } from '../../domain/access/poll-access.ts'
import { EMPTY_ANSWER, renderInputs } from '../../domain/delivery/render-inputs.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import type { View } from '../../domain/documents/view.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { parseReport } from '../../domain/status/parse-report.ts'
import type { Identity } from '../auth/identity.ts'
import { findEndpoint } from '../request/find-endpoint.ts'
import type { Service } from '../service.ts'
import type { ServedAnswer } from './note-sighting.ts'
import { findPolled } from './polled-cluster.ts'

/** The last segment of the URL that clusters report to. */
export const ACK = 'ack'

export interface Target {
  readonly dns: string
  /** Undefined for the list of clusters. */
  readonly endpoint: string | undefined
  readonly query: string
}

export function answerPoll(
  service: Service,
  { grant }: Identity,
  { dns, endpoint = '', query }: Target,
): Result<ServedAnswer> {
  const { types } = service
  const { state } = service.engine
  const refused = refusePolls(grant)
  if (refused) return fail(refused)
  const type = endpoint === ACK ? succeed(undefined) : findEndpoint(types, endpoint)
  if (!type.ok) return type
  const polled = findPolled(service, grant, dns)
  if (!polled.ok) return polled
  const found = polled.value
  const { id } = found
  if (!type.value) {
    const report = parseReport(types, query)
    if (!report.ok) return report
    const { revision } = state
    return succeed({ ...EMPTY_ANSWER, revision, cluster: id, endpoint, report: report.value })
  }
  const view = servedTo(types, state, id)
  // The served view may have another version of the cluster, and has none of a deleted one.
  const isStaged = (view as View) !== state
  const cluster = isStaged ? (view.get(types.cluster.type.name, id) ?? found) : found
  const { text, digest } = renderInputs(view, types, type.value, cluster)
  const servedFrom = isStaged ? stagingOf(types, state).servedFrom(id) : 0
  return succeed({ text, digest, revision: state.revision, cluster: id, endpoint, servedFrom })
}
