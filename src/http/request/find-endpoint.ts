// Finds the resource type of a poll endpoint.
import { fail, type Result, succeed } from '../../base/problem.ts'
import type { DeliveredType, Types } from '../../domain/types/resource-type.ts'

export function findEndpoint(types: Types, endpoint: string): Result<DeliveredType> {
  const type = types.byEndpoint(endpoint)
  if (type) return succeed(type)
  const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
  return fail({
    code: 'not_found',
    reason: 'unknown_endpoint',
    message: `no endpoint "${endpoint}": known are ${known}`,
  })
}
