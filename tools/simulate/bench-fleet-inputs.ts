// What the clusters of a made fleet should get: worked out from its documents, without the code of the service.
import { component, type FleetCluster, namespace, rolebinding } from '../../bench/fleet.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { ExpectedInputs } from './oracle.ts'

/** In the order in which a simulated cluster takes them up. */
export const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings'] as const
export type Endpoint = (typeof ENDPOINTS)[number]

export function benchFleetInputs(document: FleetCluster, endpoint: Endpoint): ExpectedInputs {
  const { cluster_name: name, cluster_dns: dns, environment } = document
  const cluster = { name, dns, environment }
  const numberOf = (id: string): number => Number(id.slice(id.lastIndexOf('-') + 1))
  if (endpoint === 'namespaces')
    return document.namespaces.map(({ id }) => ({ ...namespace(numberOf(id)), cluster }))
  if (endpoint === 'rolebindings')
    return document.rolebindings.map(({ id }) => ({ ...rolebinding(numberOf(id)), cluster }))
  const assigned = new Set(document.platform_components.map(({ id }) => id))
  return document.platform_components.map(({ id, enabled }): JsonObject => {
    const { oci_url, oci_tag, depends_on, ...rest } = component(numberOf(id))
    return {
      ...rest,
      // A component waits for none that its cluster does not have.
      depends_on: depends_on.filter((other) => assigned.has(other)),
      enabled,
      patches: document.patches[id] ?? {},
      cluster,
      source: { oci_url, oci_tag },
    }
  })
}
