// Whose events are taken: a cluster's own token sends them, and not more than its budget.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { fail, type Result } from '../../base/problem.ts'
import { refusePolls } from '../../domain/access/poll-access.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { EventBudget } from '../load/event-budget.ts'
import { sendProblem } from '../request/problem-response.ts'
import type { Service } from '../service.ts'
import { findPolled, noteRefusal } from './polled-cluster.ts'

/** Refuses before the body is read. The routes of the scope name the cluster by `dns` in their path. */
export function admitEvents(scope: FastifyInstance, service: Service): void {
  const budget = new EventBudget(service.now)
  scope.addHook('onRequest', async (request, reply) => {
    const { dns } = request.params as { dns: string }
    const cluster = await identifySender(service, request, dns)
    if (!cluster.ok) {
      noteRefusal(service, dns, cluster.problem)
      return sendProblem(reply, cluster.problem)
    }
    const excess = budget.take(cluster.value.id)
    if (!excess) return undefined
    service.metrics.countDroppedEvent()
    return sendProblem(reply, excess)
  })
}

async function identifySender(
  service: Service,
  request: FastifyRequest,
  dns: string,
): Promise<Result<Entry>> {
  const identity = await service.auth.identify(request.raw)
  if (!identity.ok) return identity
  request.identity = identity.value
  const { grant } = identity.value
  const refused = refusePolls(grant)
  return refused ? fail(refused) : findPolled(service, grant, dns)
}
