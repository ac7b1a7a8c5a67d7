// What the clusters of a made fleet should get: worked out from its documents, without the code of the service.
import { component, type FleetCluster, namespace, rolebinding } from '../../bench/fleet.ts'
import { isObject, type JsonObject } from '../../src/base/json.ts'
import type { ExpectedInputs } from './oracle.ts'

/** In the order in which a simulated cluster takes them up. */
export const ENDPOINTS = ['platform-components', 'namespaces', 'rolebindings'] as const
export type Endpoint = (typeof ENDPOINTS)[number]

/** Returns the definition of a type that a cluster is assigned. */
export type FindDefinition = (type: string, id: string) => JsonObject

const MADE: Readonly<Record<string, (n: number) => JsonObject>> = {
  platform_components: component,
  namespaces: namespace,
  rolebindings: rolebinding,
}

/** As the fleet was made. */
function findMade(type: string, id: string): JsonObject {
  return MADE[type]?.(Number(id.slice(id.lastIndexOf('-') + 1))) ?? {}
}

export function benchFleetInputs(
  document: JsonObject | FleetCluster,
  endpoint: Endpoint,
  find: FindDefinition = findMade,
): ExpectedInputs {
  const { cluster_name: name, cluster_dns: dns, environment } = document as FleetCluster
  const cluster = { name, dns, environment }
  const type = endpoint.replace('-', '_')
  const references = (document as JsonObject)[type] as readonly (JsonObject & { readonly id: string })[]
  if (endpoint !== 'platform-components') return references.map(({ id }) => ({ ...find(type, id), cluster }))
  const enabled = new Set(references.flatMap(({ id, enabled }) => (enabled === false ? [] : [id])))
  const { patches } = document
  return references.map(({ id, ...own }): JsonObject => {
    const { oci_url, oci_tag, depends_on, ...rest } = find(type, id)
    return {
      ...rest,
      // A component waits for none that its cluster does not have.
      depends_on: (depends_on as readonly string[]).filter((other) => enabled.has(other)),
      enabled: own.enabled ?? true,
      patches: (isObject(patches) && patches[id]) || {},
      cluster,
      source: { oci_url, oci_tag: own.oci_tag ?? oci_tag },
    } as JsonObject
  })
}
