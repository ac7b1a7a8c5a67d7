// What a poll of one cluster is answered with.
import { fail, type Result, succeed } from '../../base/problem.ts'
import { refusePolls } from '../../domain/access/poll-access.ts'
import { EMPTY_ANSWER, renderInputs } from '../../domain/delivery/render-inputs.ts'
import { type ServedView, servedTo } from '../../domain/delivery/served-view.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { parseReport } from '../../domain/status/parse-report.ts'
import type { DeliveredType } from '../../domain/types/resource-type.ts'
import type { Identity } from '../auth/identity.ts'
import { findEndpoint } from '../request/find-endpoint.ts'
import type { Service } from '../service.ts'
import { acceptsGzip, bodyOf } from './answer.ts'
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

/** `accepted` says what encodings the client takes; the answer has to be sent before anything else is done. */
export function answerPoll(
  service: Service,
  { grant }: Identity,
  { dns, endpoint = '', query }: Target,
  accepted: string | string[] | undefined,
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
    return succeed({ ...bodyOf(EMPTY_ANSWER), revision, cluster: id, endpoint, report: report.value })
  }
  const view = servedTo(types, state, id)
  // The served view may have another version of the cluster, and has none of a deleted one.
  const isStaged = (view as View) !== state
  const cluster = isStaged ? (view.get(types.cluster.type.name, id) ?? found) : found
  const servedFrom = isStaged ? stagingOf(types, state).servedFrom(id) : 0
  const answer = answerOf(service, type.value, view, cluster, accepted)
  const { body, digest } = answer
  return succeed({ body, digest, revision: state.revision, cluster: id, endpoint, servedFrom })
}

/** From the cache where it has the answer: clusters mostly get what they got before. */
function answerOf(
  { types, answers, engine }: Service,
  type: DeliveredType,
  view: ServedView,
  cluster: Entry,
  accepted: string | string[] | undefined,
): Pick<ServedAnswer, 'body' | 'digest'> {
  if (!acceptsGzip(accepted)) return bodyOf(renderInputs(view, types, type, cluster))
  return bodyOf(
    answers.answer(
      types,
      view,
      type,
      cluster,
      () => engine.fleet.fleet.records.get(cluster.id)?.poll(type.delivery.endpoint)?.mark,
    ),
  )
}
