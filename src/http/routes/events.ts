// Events of Flux's notification-controller: why a component or an endpoint fails on a cluster, and that it is over.
import { EVENT_BODY_LIMIT } from '../../api/limits.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { POLL_BASE } from '../../base/urls.ts'
import { parseEvent } from '../../domain/status/parse-event.ts'
import { example, json, ok, READING_ONE } from '../openapi/openapi-operation.ts'
import { NO_OBJECT } from '../request/body.ts'
import { dnsInPath } from '../request/dns-parameter.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const PAYLOAD = {
  type: 'object',
  description:
    'The event that notification-controller sends to a provider of the type generic. Other fields are ignored.',
  additionalProperties: true,
}

const EXAMPLE = {
  involvedObject: { kind: 'HelmRelease', name: 'grafana', namespace: 'flux-system' },
  severity: 'error',
  reason: 'UpgradeFailed',
  message: 'Helm upgrade failed: timed out waiting for the condition',
  metadata: { 'event.toolkit.fluxcd.io/digest': '3c1f6f0f4a5b2d7e' },
}

export function eventRoutes(service: Service): Route[] {
  const { types, metrics } = service
  return [
    route<'dns'>({
      method: 'POST',
      path: `${POLL_BASE}/{dns}/events`,
      access: 'poll',
      tag: 'polls',
      id: 'send_event',
      summary: 'Takes an event of Flux on a cluster.',
      description:
        "Sent by the cluster's notification-controller with the cluster's own token. An event of any shape is taken, and one that says nothing of a component or endpoint of the cluster is ignored. Events tell why something fails; that it works is told by acknowledgements. Beyond a budget they fail with 429.",
      parameters: [dnsInPath(types)],
      isReport: true,
      body: { content: json(PAYLOAD, undefined, example(EXAMPLE)), limit: EVENT_BODY_LIMIT, isAnyType: true },
      answers: { 202: ok('Taken.', { type: 'object' }, ['X-Request-Id']) },
      problems: [...READING_ONE, 413],
      handler: (request, reply) => {
        const { body } = request
        if (!isObject(body)) return sendProblem(reply, NO_OBJECT)
        metrics.countEvent(take(service, request.params.dns, body))
        return reply.code(202).header('Cache-Control', 'no-store').send({})
      },
    }),
  ]
}

function take(
  { engine, types }: Service,
  dns: string,
  payload: JsonObject,
): 'failed' | 'succeeded' | 'ignored' {
  const cluster = engine.state.clusterByDns(dns)
  const event = parseEvent(types, payload)
  if (!event || !cluster || cluster.deleted) return 'ignored'
  return engine.fleet.fleet.noteEvent(cluster, event) ? event.verdict : 'ignored'
}
