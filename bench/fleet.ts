// Makes fleets of any size: every cluster has 20 of 60 components (3 patched), 10 namespaces and 5 role bindings.

import type { JsonObject } from '../src/base/json.ts'
import { TOKENS } from '../src/domain/access/token.ts'
import type { Document } from '../src/domain/types/resource-type.ts'
import { hashOf, tokenIdOf } from '../src/engine/token-secret.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import type { NewChange } from '../src/store/store.ts'

const COMPONENTS = 60
const NAMESPACES = 40
const ROLEBINDINGS = 20
const ENVIRONMENTS = ['dev', 'qa', 'uat', 'prod']

export function clusterId(n: number): string {
  return `cluster-${String(n).padStart(6, '0')}`
}

export function clusterDns(n: number): string {
  return `${clusterId(n)}.k8s.example.com`
}

/** The i-th of `count` picks out of `total` for cluster n, spread evenly and always the same. */
function picks(n: number, count: number, total: number, prefix: string): string[] {
  return Array.from(
    { length: count },
    (_, i) => `${prefix}-${(n * 7 + Math.floor((i * total) / count)) % total}`,
  )
}

export type FleetCluster = ReturnType<typeof cluster>

/** The n-th cluster. */
export function cluster(n: number) {
  const components = picks(n, 20, COMPONENTS, 'component')
  const patches: Readonly<Record<string, JsonObject>> = Object.fromEntries(
    components
      .slice(0, 3)
      .map((id, i) => [id, { replicaCount: String((n % 5) + 1), ui_message: `hello ${n}-${i}` }]),
  )
  return {
    id: clusterId(n),
    cluster_name: clusterId(n),
    cluster_dns: clusterDns(n),
    environment: ENVIRONMENTS[n % ENVIRONMENTS.length] ?? 'dev',
    labels: { region: n % 2 ? 'eu' : 'us', wave: String(n % 10) },
    deletion_protection: false,
    patches,
    namespaces: picks(n, 10, NAMESPACES, 'namespace').map((id) => ({ id })),
    platform_components: components.map((id) => ({ id, enabled: true })),
    rolebindings: picks(n, 5, ROLEBINDINGS, 'rolebinding').map((id) => ({ id })),
  }
}

export function component(n: number) {
  return {
    id: `component-${n}`,
    component_path: `platform/component-${n}/1.${n}.0`,
    component_version: `1.${n}.0`,
    cluster_env_enabled: n % 3 === 0,
    oci_url: 'oci://registry.example.com/platform-components',
    oci_tag: 'v1.0.0',
    depends_on: n % 4 === 3 ? [`component-${n - 1}`] : [],
  }
}

export function namespace(n: number) {
  return { id: `namespace-${n}`, labels: { team: `team-${n}` }, annotations: { owner: `team-${n}` } }
}

export function rolebinding(n: number) {
  const subjects = [{ kind: 'Group', name: `group-${n}`, apiGroup: 'rbac.authorization.k8s.io' }]
  return { id: `rolebinding-${n}`, role: 'view', subjects }
}

/** The secret of a cluster's own token. */
export function clusterToken(n: number): string {
  return `token-of-${clusterId(n)}`
}

function token(n: number): Document {
  const created_at = new Date(0).toISOString()
  return {
    id: tokenIdOf(clusterId(n)),
    name: clusterId(n),
    role: 'cluster',
    cluster: clusterId(n),
    created_at,
    created_by: 'bench',
    secrets: [{ hash: hashOf(clusterToken(n)), created_at }],
  }
}

/** A fleet as a seed file has it. */
export function fleetSeed(clusters: number): Readonly<Record<string, readonly Document[]>> {
  const made = <T>(count: number, make: (n: number) => T): T[] =>
    Array.from({ length: count }, (_, n) => make(n))
  return {
    platform_components: made(COMPONENTS, component),
    namespaces: made(NAMESPACES, namespace),
    rolebindings: made(ROLEBINDINGS, rolebinding),
    clusters: made(clusters, cluster),
  }
}

function* documents(clusters: number, withTokens: boolean): Generator<[string, Document]> {
  for (const [type, all] of Object.entries(fleetSeed(clusters)))
    for (const document of all) yield [type, document]
  for (let n = 0; withTokens && n < clusters; n++) yield [TOKENS, token(n)]
}

/** Writes a fleet into a new SQLite file, as one revision; with a token of its own for each cluster, if wanted. */
export async function writeFleet(path: string, clusters: number, withTokens = false): Promise<void> {
  const changes: NewChange[] = []
  for (const [type, document] of documents(clusters, withTokens)) {
    changes.push({ type, id: document.id, after: { json: JSON.stringify(document), deleted: false } })
  }
  const store = openSqliteStore({ path, write: true })
  await store.commit(0, { ...META, operation: 'make a fleet', changes })
  await store.close()
}

const META = {
  time: new Date(0).toISOString(),
  actor: 'bench',
  message: null,
  request_id: 'bench',
  client_address: null,
}

/** Edits of one cluster each, spread over the fleet. */
export async function addRevisions(path: string, clusters: number, count: number): Promise<void> {
  const store = openSqliteStore({ path, write: true })
  const { revision } = await store.head()
  for (let made = 0; made < count; made += AT_ONCE) {
    const edits = Array.from({ length: Math.min(AT_ONCE, count - made) }, (_, i) => {
      const document = cluster(((made + i) * 7919) % clusters)
      const json = JSON.stringify({ ...document, labels: { edited: String(made + i) } })
      const changes = [{ type: 'clusters', id: document.id, after: { json, deleted: false } }]
      return { ...META, operation: 'edit a cluster', changes }
    })
    await store.commit(revision + made, ...edits)
  }
  await store.close()
}

const AT_ONCE = 500
