// Makes fleets of any size: every cluster has 20 of 60 components (3 patched), 10 namespaces and 5 role bindings. In a
// lived-in fleet 3 components are pinned to versions of the cluster's own, 5 % are switched off, and components depend on
// up to 2 others, of which clusters lack some.

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
/** Of a lived-in fleet: the components that every cluster has, and that the others mostly depend on. */
const CORE = 10

export type FleetKind = 'uniform' | 'lived-in'

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

/** A number that looks random and is always the same for the same numbers. */
function scatter(a: number, b: number): number {
  let mixed = Math.imul(a + 1, 0x9e3779b1) ^ Math.imul(b + 1, 0x85ebca77)
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x2c1b3c6d)
  return (mixed ^ (mixed >>> 13)) >>> 0
}

type ComponentReference = {
  readonly id: string
  readonly enabled: boolean
  readonly oci_tag?: string
  readonly component_path?: string
}

const REFERENCES: Readonly<Record<FleetKind, (n: number) => ComponentReference[]>> = {
  uniform: (n) => picks(n, 20, COMPONENTS, 'component').map((id) => ({ id, enabled: true })),
  'lived-in': (n) =>
    Array.from({ length: 20 }, (_, i) => {
      const other = CORE + ((n * 7 + i * 5 + (scatter(n, i) % 3)) % (COMPONENTS - CORE))
      const number = i < CORE ? i : other
      return {
        id: `component-${number}`,
        enabled: scatter(n, i + 100) % 20 > 0,
        ...((i === 3 || i === 10) && { oci_tag: `v0.9.${scatter(n, i + 200) % 5}` }),
        ...(i === 17 && { component_path: `platform/component-${number}/1.0.${scatter(n, 300) % 3}` }),
      }
    }),
}

export type FleetCluster = ReturnType<typeof cluster>

/** The n-th cluster. */
export function cluster(n: number, kind: FleetKind = 'uniform') {
  const components = REFERENCES[kind](n)
  const patches: Readonly<Record<string, JsonObject>> = Object.fromEntries(
    components
      .slice(0, 3)
      .map(({ id }, i) => [id, { replicaCount: String((n % 5) + 1), ui_message: `hello ${n}-${i}` }]),
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
    platform_components: components,
    rolebindings: picks(n, 5, ROLEBINDINGS, 'rolebinding').map((id) => ({ id })),
  }
}

const DEPENDENCIES: Readonly<Record<FleetKind, (n: number) => number[]>> = {
  uniform: (n) => (n % 4 === 3 ? [n - 1] : []),
  'lived-in': (n) => {
    const first = scatter(n, 1) % Math.max(1, Math.min(n, CORE))
    const second = n > CORE ? CORE + (scatter(n, 2) % (n - CORE)) : n - 1
    return [...new Set([first, second])]
      .filter((other) => other < n && other >= 0)
      .slice(0, scatter(n, 3) % 3)
  },
}

export function component(n: number, kind: FleetKind = 'uniform') {
  return {
    id: `component-${n}`,
    component_path: `platform/component-${n}/1.${n}.0`,
    component_version: `1.${n}.0`,
    cluster_env_enabled: n % 3 === 0,
    oci_url: 'oci://registry.example.com/platform-components',
    oci_tag: 'v1.0.0',
    depends_on: DEPENDENCIES[kind](n).map((other) => `component-${other}`),
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
export function fleetSeed(
  clusters: number,
  kind: FleetKind = 'uniform',
): Readonly<Record<string, readonly Document[]>> {
  const seed = Map.groupBy(documents(clusters, kind), ([type]) => type)
  return Object.fromEntries([...seed].map(([type, all]) => [type, all.map(([, document]) => document)]))
}

function* documents(clusters: number, kind: FleetKind = 'uniform'): Generator<[string, Document]> {
  for (let n = 0; n < COMPONENTS; n++) yield ['platform_components', component(n, kind)]
  for (let n = 0; n < NAMESPACES; n++) yield ['namespaces', namespace(n)]
  for (let n = 0; n < ROLEBINDINGS; n++) yield ['rolebindings', rolebinding(n)]
  for (let n = 0; n < clusters; n++) yield ['clusters', cluster(n, kind)]
}

function* withTokens(clusters: number, all: Iterable<[string, Document]>): Generator<[string, Document]> {
  yield* all
  for (let n = 0; n < clusters; n++) yield [TOKENS, token(n)]
}

/**
 * Writes a fleet into a new SQLite file; with a token of its own for each cluster, if wanted. A large fleet takes several
 * revisions, so that no memory has to hold all of it.
 */
export async function writeFleet(
  path: string,
  clusters: number,
  hasTokens = false,
  kind: FleetKind = 'uniform',
): Promise<void> {
  const all = documents(clusters, kind)
  const store = openSqliteStore({ path, write: true })
  let base = 0
  let changes: NewChange[] = []
  const commit = async (): Promise<void> => {
    await store.commit(base++, { ...META, operation: 'make a fleet', changes })
    changes = []
  }
  for (const [type, document] of hasTokens ? withTokens(clusters, all) : all) {
    changes.push({ type, id: document.id, after: { json: JSON.stringify(document), deleted: false } })
    if (changes.length === DOCUMENTS_AT_ONCE) await commit()
  }
  if (changes.length > 0) await commit()
  await store.close()
}

const DOCUMENTS_AT_ONCE = 25_000

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
