// The path parameter of polls and reports.
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { inPath, type Parameter } from './parameters.ts'

export function dnsInPath(types: RegisteredTypes): Parameter {
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const { example } = cluster.schema.properties?.[types.cluster.dns] ?? {}
  return inPath('dns', 'DNS name of the cluster; case and a trailing dot do not matter.', {
    type: 'string',
    ...(example !== undefined && { example }),
  })
}
