// Goes through the whole fleet for a caller, when its turn comes and in time slices.
import type { FastifyRequest } from 'fastify'
import { type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { View } from '../../domain/documents/view.ts'
import type { Fleet } from '../../engine/fleet/fleet.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { inLane, senderOf } from '../load/callers.ts'
import type { Service } from '../service.ts'

export function listFor<T>(
  service: Service,
  request: FastifyRequest,
  steps: (fleet: Fleet, view: View) => Steps<T>,
): Promise<Result<T>> {
  const { engine, admission } = service
  const sender = senderOf(service, request, 'read')
  return inLane(admission.lists, sender, async () => {
    const view = engine.state.freeze()
    const running = runTimeSliced(steps(engine.fleet.fleet, view), sender.signal)
    return succeed(await running.finally(view.release))
  })
}
