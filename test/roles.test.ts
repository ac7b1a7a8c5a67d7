// Every route, for every sort of caller, inside and outside of what they may: from the API's own description.
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { join } from 'node:path'
import { test } from 'node:test'
import type { FastifyInstance } from 'fastify'
import { RESERVED_KINDS } from '../src/api/reserved-names.ts'
import type { Json, JsonObject } from '../src/base/json.ts'
import { type Grant, ROLES, type Role } from '../src/domain/access/grant.ts'
import type { Engine } from '../src/engine/engine.ts'
import { newToken } from '../src/engine/token-secret.ts'
import type { RegisteredTypes } from '../src/registry/build-types.ts'
import { builtInTypes, READ_TOKEN, startService, type TestService, WRITE_TOKEN } from './service.ts'

const EXAMPLE = join(import.meta.dirname, '../examples/network-policies')
const POLLS = '/api/v2/flux/clusters'

type Access =
  | 'open'
  | 'poll'
  | 'known'
  | 'own_status'
  | 'own_hold'
  | 'mirror'
  | 'watch'
  | 'read'
  | 'write'
  | 'admin'
type Mode = 'read-only' | 'crud'

// Who may: the least role for each access, and what else an editor needs.

const LEAST: Record<Exclude<Access, 'open'>, { call: Role; preview: Role }> = {
  poll: { call: 'cluster', preview: 'cluster' },
  known: { call: 'cluster', preview: 'cluster' },
  own_status: { call: 'cluster', preview: 'cluster' },
  own_hold: { call: 'cluster', preview: 'cluster' },
  read: { call: 'viewer', preview: 'viewer' },
  mirror: { call: 'mirror', preview: 'mirror' },
  watch: { call: 'mirror', preview: 'mirror' },
  write: { call: 'editor', preview: 'viewer' },
  admin: { call: 'admin', preview: 'admin' },
}
const ORDER: readonly Role[] = ['cluster', 'poller', 'mirror', 'viewer', 'editor', 'admin']

interface Caller {
  readonly name: string
  token: string | null
  /** Nothing for those who are nobody here. */
  readonly grant?: Grant
}

/** Why a request is refused, or that it is not. */
function verdict(access: Access, { grant }: Caller, request: Request, preview = false): 'ok' | 401 | 403 {
  if (access === 'open') return 'ok'
  if (!grant) return 401
  const least = LEAST[access][preview ? 'preview' : 'call']
  if (ORDER.indexOf(grant.role) < ORDER.indexOf(least)) return 403
  if (access === 'mirror' && (grant.role === 'viewer' || grant.role === 'editor')) return 403
  if (access === 'mirror' && request.tier === 'prod' && grant.selector) return 403
  if (access === 'poll' && grant.role === 'mirror' && grant.selector) return 403
  if (access === 'own_status' && (grant.role === 'poller' || grant.role === 'mirror')) return 403
  if (access === 'own_hold' && (grant.role === 'poller' || grant.role === 'mirror')) return 403
  if (access === 'own_hold' && grant.role === 'viewer') return preview ? 'ok' : 403
  const isOwn = access === 'poll' || access === 'own_status' || access === 'own_hold'
  if (isOwn && grant.role === 'cluster') return request.cluster === grant.cluster ? 'ok' : 403
  if ((access !== 'write' && access !== 'own_hold') || preview || grant.role !== 'editor') return 'ok'
  const isForeign = (type: string): boolean => grant.types?.includes(type) === false
  const isBeyond =
    request.purges || (request.tier === 'prod' && grant.selector) || request.types?.some(isForeign)
  return isBeyond ? 403 : 'ok'
}

// What is there: the description, and the routes behind it.

interface Operation {
  readonly id: string
  readonly method: string
  readonly path: string
  readonly access: Access
}

/** An operation's access follows from what the description says of it. */
function accessOf(method: string, { tags, operationId, security }: Described): Access {
  if (security?.length === 0) return 'open'
  if (tags[0] === 'polls') return 'poll'
  if (operationId === 'whoami') return 'known'
  if (operationId === 'cluster_status' || operationId === 'get_hold') return 'own_status'
  if (operationId === 'hold_cluster' || operationId === 'release_cluster') return 'own_hold'
  if (operationId === 'copy_log' || operationId === 'forward_reports') return 'mirror'
  if (operationId === 'watch_revisions') return 'watch'
  if (tags[0] === 'tokens') return 'admin'
  return method === 'get' ? 'read' : 'write'
}

/** What clusters and mirrors report is no write: it makes no revision, and there is no preview of it. */
const REPORTS = ['send_event', 'forward_reports']

interface Described {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly security?: readonly unknown[]
}

async function operationsOf(service: TestService): Promise<Operation[]> {
  const { body } = await service.call('GET', '/openapi.json', { token: null })
  return Object.entries(body.paths as Record<string, Record<string, Described>>).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([method, described]) => {
      if (method === 'parameters') return []
      const access = accessOf(method, described)
      return { id: described.operationId, method: method.toUpperCase(), path, access }
    }),
  )
}

interface Started {
  readonly service: TestService
  /** As Fastify has them, with the access that they declare. */
  readonly routes: ReadonlyMap<string, string | undefined>
}

/** Fastify tells of every instance that is made; its routes are noted as they are added. */
async function startWatched(mode: Mode, types: RegisteredTypes, fleet: JsonObject = {}): Promise<Started> {
  const routes = new Map<string, string | undefined>()
  const watch = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.addHook('onRoute', ({ method, url, config }) => {
      for (const each of [method].flat()) routes.set(`${each} ${url}`, config?.access)
    })
  }
  subscribe('fastify.initialization', watch)
  try {
    return { service: await startService({ mode, types, fleet }), routes }
  } finally {
    unsubscribe('fastify.initialization', watch)
  }
}

/** Without the names of parameters. */
function shapeOf(path: string): string {
  return path.replaceAll(/\{\w+\}|:\w+/g, '{}')
}

/** One route answers the polls of all endpoints. */
function expand({ delivered }: RegisteredTypes, route: string): string[] {
  if (!route.endsWith(`${POLLS}/:dns/:endpoint`)) return [shapeOf(route)]
  const endpoints = [...delivered.map(({ delivery }) => delivery.endpoint), 'ack']
  return endpoints.map((endpoint) => shapeOf(route.replace(':endpoint', endpoint)))
}

test('no type can take the place of a route: every first segment of one is a reserved kind, or a type', async (t) => {
  const types = builtInTypes()
  const { service, routes } = await startWatched('crud', types)
  t.after(() => service.stop())
  const urls = [...routes.keys()].map((route) => route.split(' ')[1] as string)
  const segments = new Set(urls.map((url) => url.split('/')[1]?.split('.')[0] as string))
  assert.ok(segments.has('openapi') && segments.has('clusters') && segments.size > 10, [...segments].join())
  const free = [...segments].filter((segment) => !RESERVED_KINDS.has(segment) && !types.get(segment))
  assert.deepEqual(free, [])
})

for (const [name, types] of [
  ['the types that are built in', builtInTypes()],
  ['a type of your own beside them', builtInTypes(EXAMPLE)],
] as const) {
  for (const mode of ['crud', 'read-only'] as const) {
    test(`the description holds every route there is and says who has access: ${name}, ${mode}`, async (t) => {
      const { service, routes } = await startWatched(mode, types)
      t.after(() => service.stop())
      const found = [...routes].filter(([route]) => !/^(GET|HEAD) \/docs(\/|$)/.test(route))
      const described = (await operationsOf(service)).flatMap(({ method, path, access }) => {
        const line = `${method} ${shapeOf(path)} is ${access}`
        return method === 'GET' ? [line, line.replace('GET', 'HEAD')] : [line]
      })
      const real = found.flatMap(([route, access]) =>
        expand(types, route).map((each) => `${each} is ${access}`),
      )
      assert.deepEqual(real.sort(), described.sort())
    })
  }
}

test('a route that does not say who has access to it keeps the service from starting', async () => {
  const add = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance }
    fastify.register(async (scope) => {
      scope.get('/forgotten', (_request, reply) => reply.send({}))
    })
  }
  subscribe('fastify.initialization', add)
  try {
    await assert.rejects(startService(), /GET \/forgotten does not say who has access to it/)
  } finally {
    unsubscribe('fastify.initialization', add)
  }
})

// What to ask: for every operation a request that does something, in the one tier and in the other.

interface Request {
  readonly path: string
  readonly body?: Json
  /** Of a poll: whose it is. */
  readonly cluster?: string
  /** Of a write: the tier of the clusters that it reaches; none for what reaches nobody. */
  readonly tier?: Tier
  /** Of a write: the types of what it changes. */
  readonly types?: readonly string[]
  readonly purges?: boolean
  /** Of an answer that does not end by itself. */
  readonly streams?: boolean
}
type Tier = 'dev' | 'prod'
const TIERS = ['dev', 'prod'] as const

/** For every type: a document, what it can be edited to, and how a cluster can have it otherwise. */
const SAMPLES: Record<string, { document: JsonObject; edit: JsonObject; override?: JsonObject }> = {
  platform_components: {
    document: { component_path: 'p', component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' },
    edit: { oci_tag: 'v2' },
    override: { enabled: false },
  },
  namespaces: { document: {}, edit: { labels: { x: '1' } }, override: { labels: { x: '2' } } },
  rolebindings: {
    document: { role: 'view', subjects: [{ kind: 'Group', name: 'g' }] },
    edit: { role: 'edit' },
    override: { role: 'admin' },
  },
  network_policies: {
    document: { target_namespace: 'team' },
    edit: { target_namespace: 'other' },
    override: { ingress_rules: [{ from_namespace: 'a', port: 1 }] },
  },
  strategies: { document: { waves: [{ name: 'all', rest: true }] }, edit: { bake_s: 5 } },
  freezes: {
    document: { reason: 'far away', from: '2090-01-01T00:00:00Z' },
    edit: { reason: 'very far away' },
  },
  applied_sets: { document: {}, edit: { documents: { namespaces: [] } } },
  clusters: { document: {}, edit: { node_count: 9 } },
}

function sampleOf(type: string) {
  return SAMPLES[type] ?? assert.fail(`this test knows no document of ${type}: add one`)
}

function clusterDocument({ delivered }: RegisteredTypes, id: string, environment: Tier): JsonObject {
  const lists = delivered.map(({ delivery }) => [delivery.assignedBy, [{ id: environment }]])
  return {
    id,
    cluster_name: id,
    cluster_dns: `${id}.example.com`,
    environment,
    ...Object.fromEntries(lists),
    patches: { [environment]: { x: '1' } },
  }
}

/** Of every type dev and prod, which are the clusters and what each of them has; definitions that are free. */
function fleetOf(types: RegisteredTypes): JsonObject {
  const definitions = types.all.filter(({ name }) => name !== 'clusters')
  const bare = (id: string, environment: Tier) => {
    return { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment }
  }
  const uses = [...TIERS, 'free', 'staged']
  return {
    ...Object.fromEntries(
      definitions.map(({ name }) => [name, uses.map((use) => ({ id: use, ...sampleOf(name).document }))]),
    ),
    clusters: [
      ...TIERS.map((tier) => clusterDocument(types, tier, tier)),
      ...TIERS.map((tier) => bare(`gone-${tier}`, tier)),
      ...TIERS.flatMap((tier) => [bare(`held-${tier}`, tier), bare(`rolled-${tier}`, tier)]),
    ],
  }
}

/** A token that is there to be looked at, rotated and revoked. */
const SPARE = { name: 'spare', role: 'viewer' }

interface World {
  readonly types: RegisteredTypes
  /** The revisions that edited a namespace of each tier. */
  readonly edits: Readonly<Record<Tier, number>>
  /** The one before them. */
  readonly before: number
  /** Of each tier, what assigns a namespace and runs, and what assigns a role binding and is paused. */
  readonly running: Readonly<Record<Tier, string>>
  readonly paused: Readonly<Record<Tier, string>>
}

/** By the id of the operation, without the name of a type at its end. */
const REQUESTS: Record<string, (world: World, tier: Tier, type: string) => Request[]> = {
  health: () => [{ path: '/health' }],
  ready: () => [{ path: '/ready' }],
  metrics: () => [{ path: '/metrics' }],
  openapi_json: () => [{ path: '/openapi.json' }],
  openapi_yaml: () => [{ path: '/openapi.yaml' }],
  whoami: () => [{ path: '/whoami' }],

  poll: ({ types }, tier, type) => {
    const endpoint = types.delivered.find(({ name }) => name === type)?.delivery.endpoint
    // The list is nobody's own.
    if (!endpoint) return [{ path: POLLS }]
    return [
      { path: `${POLLS}/${tier}.example.com/${endpoint}`, cluster: tier },
      { path: `${POLLS}/${tier.toUpperCase()}.example.com./${endpoint}`, cluster: tier },
    ]
  },

  acknowledge: (_world, tier) => [{ path: `${POLLS}/${tier}.example.com/ack?v=1`, cluster: tier }],
  send_event: (_world, tier) => [
    { path: `${POLLS}/${tier}.example.com/events`, body: { severity: 'info' }, cluster: tier },
  ],

  forward_reports: (_world, tier) => [
    {
      path: '/reports',
      body: { reports: [{ kind: 'refusals', key: tier, age_ms: 0, value: [403, 'other_cluster'] }] },
      tier,
    },
  ],

  list: (_world, _tier, type) => [{ path: `/${type}` }],
  get: (_world, tier, type) => [{ path: `/${type}/${tier}` }],
  history: (_world, tier, type) => [{ path: `/${type}/${tier}/history` }],
  create: ({ types }, tier, type) => {
    if (type !== 'clusters')
      return [
        {
          path: `/${type}`,
          body: { id: 'new', ...sampleOf(type).document },
          types: [type],
          ...(types.all.find(({ name }) => name === type)?.isFleetWide && { tier: 'prod' }),
        },
      ]
    const body = { id: 'new', cluster_name: 'new', cluster_dns: 'new.example.com', environment: tier }
    return [{ path: '/clusters', body, tier, types: [type] }]
  },
  replace: ({ types }, tier, type) => {
    const { document, edit } = sampleOf(type)
    if (type !== 'clusters')
      return [{ path: `/${type}/${tier}`, body: { ...document, ...edit }, ...reach(types, tier, type) }]
    const body = { ...clusterDocument(types, tier, tier), ...edit }
    return [{ path: `/clusters/${tier}`, body, tier, types: [type] }]
  },
  patch: ({ types }, tier, type) => {
    return [{ path: `/${type}/${tier}`, body: sampleOf(type).edit, ...reach(types, tier, type) }]
  },
  delete: ({ types }, tier, type) => {
    const query = '?cascade=true&confirm=removals'
    if (type !== 'clusters') return [{ path: `/${type}/${tier}${query}`, ...reach(types, tier, type) }]
    // A cluster goes with all that it is assigned.
    const all = allOf(types)
    return [
      { path: `/clusters/${tier}`, tier, types: all },
      { path: `/clusters/${tier}?purge=true`, tier, types: all, purges: true },
      { path: `/clusters/gone-${tier}?purge=true`, tier, types: ['clusters'], purges: true },
    ]
  },

  restore: (_world, tier) => [{ path: `/clusters/gone-${tier}/restore`, tier, types: ['clusters'] }],
  bootstrap: (_world, tier) => [{ path: `/clusters/${tier}/bootstrap` }],
  inputs: (_world, tier) => [
    { path: `/clusters/${tier}/inputs/namespaces` },
    { path: `/clusters/${tier}/inputs/namespaces?explain=true` },
  ],
  get_assigned: (_world, tier, type) => [{ path: `/clusters/${tier}/${type}/${tier}` }],
  assign: (_world, tier, type) => [{ path: `/clusters/${tier}/${type}/free`, body: {}, tier, types: [type] }],
  override: (_world, tier, type) => {
    const body = sampleOf(type).override ?? assert.fail(`this test knows no override of ${type}: add one`)
    return [{ path: `/clusters/${tier}/${type}/${tier}?confirm=removals`, body, tier, types: [type] }]
  },
  unassign: (_world, tier, type) => [
    { path: `/clusters/${tier}/${type}/${tier}?confirm=removals`, tier, types: [type] },
  ],
  get_patches: (_world, tier) => [{ path: patchesOf(tier) }],
  replace_patches: (_world, tier) => [{ path: patchesOf(tier), body: { y: '1' }, ...patching(tier) }],
  change_patches: (_world, tier) => [{ path: patchesOf(tier), body: { x: null }, ...patching(tier) }],
  delete_patches: (_world, tier) => [{ path: patchesOf(tier), ...patching(tier) }],

  fleet_status: () => [{ path: '/status' }, { path: '/status?contact=never' }],
  revision_propagation: () => [{ path: '/revisions/1/propagation' }],
  versions: (_world, tier, type) => [{ path: `/${type}/${tier}/versions` }],
  clusters: (_world, tier, type) => [{ path: `/${type}/${tier}/clusters` }],
  list_overrides: () => [{ path: '/overrides' }, { path: '/overrides?explain=true' }],
  fleet_attention: () => [{ path: '/status/attention' }],
  cluster_status: (_world, tier) => [{ path: `/clusters/${tier}/status`, cluster: tier }],

  compare_revisions: () => [{ path: '/revisions/compare?from=1' }],
  list_revisions: () => [{ path: '/revisions' }],
  watch_revisions: () => [{ path: '/watch', streams: true }],
  copy_log: () => [{ path: '/log' }, { path: '/log?since=1&selector=environment%3Ddev' }],
  verify_revisions: () => [{ path: '/revisions/verify' }],
  get_revision: () => [{ path: '/revisions/1' }],
  revert_revision: ({ edits }, tier) => [
    { path: `/revisions/${edits[tier]}/revert`, body: {}, tier, types: ['namespaces'] },
  ],
  rollback: ({ before }, tier) => {
    const body = { to_revision: before, types: ['namespaces'], ids: [tier] }
    return [{ path: '/rollback', body, tier, types: ['namespaces'] }]
  },
  batch: (_world, tier) => [
    {
      path: '/batch',
      body: {
        operations: [
          { op: 'patch', type: 'rolebindings', id: tier, patch: { role: 'edit' } },
          { op: 'patch', type: 'clusters', selector: `environment=${tier}`, patch: { node_count: 1 } },
        ],
      },
      tier,
      types: ['rolebindings', 'clusters'],
    },
  ],

  list_rollouts: () => [{ path: '/rollouts' }],
  get_rollout: ({ running }, tier) => [{ path: `/rollouts/${running[tier]}` }],
  list_rollout_members: ({ running }, tier) => [{ path: `/rollouts/${running[tier]}/members` }],
  pause_rollout: (world, tier) => staged(world, tier, 'pause'),
  resume_rollout: ({ paused }, tier) => [
    { path: `/rollouts/${paused[tier]}/resume`, tier, types: ['rolebindings'] },
  ],
  retry_rollout: (world, tier) => staged(world, tier, 'retry'),
  abort_rollout: (world, tier) => staged(world, tier, 'abort'),
  finish_rollout: (world, tier) => staged(world, tier, 'finish?confirm=finish'),
  approve_rollout: (world, tier) => staged(world, tier, 'approve'),
  check_rollout: (world, tier) => staged(world, tier, 'check', { wave: 'all', name: 'smoke', ok: true }),
  skip_rollout: (world, tier) => staged(world, tier, 'skip', { clusters: [`rolled-${tier}`] }),
  amend_rollout: (world, tier) =>
    staged(world, tier, 'amend', {
      operations: [
        {
          op: 'assign',
          type: 'namespaces',
          ref: { id: 'staged', labels: { x: '1' } },
          clusters: [`rolled-${tier}`],
        },
      ],
    }),
  get_freeze_status: (_world, tier) => [{ path: `/freezes/${tier}/status` }],
  list_holds: () => [{ path: '/holds' }],
  get_hold: (_world, tier) => [{ path: `/holds/held-${tier}`, cluster: `held-${tier}` }],
  hold_cluster: (_world, tier) => [
    { path: `/holds/${tier}`, body: { reason: 'r' }, tier, cluster: tier, types: ['clusters'] },
  ],
  release_cluster: (_world, tier) => [
    { path: `/holds/held-${tier}`, tier, cluster: `held-${tier}`, types: ['clusters'] },
  ],

  list_tokens: () => [{ path: '/tokens' }],
  get_token: () => [{ path: '/tokens/spare' }],
  create_token: () => [{ path: '/tokens', body: { name: 'new', role: 'admin' } }],
  issue_tokens: () => [{ path: '/tokens/issue', body: { clusters: ['held-dev'] } }],
  rotate_token: () => [{ path: '/tokens/spare/rotate' }],
  revoke_token: () => [{ path: '/tokens/spare' }],
}

function staged({ running }: World, tier: Tier, action: string, body: JsonObject = {}): Request[] {
  return [{ path: `/rollouts/${running[tier]}/${action}`, body, tier, types: ['namespaces'] }]
}

function allOf({ delivered }: RegisteredTypes): string[] {
  return ['clusters', ...delivered.map(({ name }) => name)]
}

/** What an edit of a tier's document touches. */
function reach(
  { all, delivered }: RegisteredTypes,
  tier: Tier,
  type: string,
): Pick<Request, 'tier' | 'types'> {
  if (all.find(({ name }) => name === type)?.isFleetWide) return { types: [type], tier: 'prod' }
  const isSeen = type === 'clusters' || delivered.some(({ name }) => name === type)
  return { types: [type], ...(isSeen && { tier }) }
}

function patchesOf(tier: Tier): string {
  return `/clusters/${tier}/patches/${tier}`
}

function patching(tier: Tier) {
  return { tier, types: ['platform_components'] }
}

function requestsOf(world: World, { id, method }: Operation): Request[] {
  const type = world.types.all.find(({ name }) => id.endsWith(`_${name}`))?.name ?? ''
  const known =
    REQUESTS[id] ??
    (type ? REQUESTS[id.slice(0, -type.length - 1)] : undefined) ??
    assert.fail(`${method} ${id} is new: decide who may do it, and add a request to this test`)
  const requests = TIERS.flatMap((tier) => known(world, tier, type))
  return [...new Map(requests.map((request) => [JSON.stringify(request), request])).values()]
}

// The world that they are asked in.

const AUTHOR = { actor: 'test', message: null, request_id: 'test', client_address: null }

async function issue({ engine }: TestService, name: string, grant: Grant): Promise<string> {
  const { token, secret } = newToken({ name, grant, expiresAt: undefined, createdBy: 'test' }, new Date())
  const written = await engine.write([{ op: 'create_token', token, path: '' }], AUTHOR)
  assert.ok(written.ok, JSON.stringify(written))
  return secret
}

async function callersOf(service: TestService): Promise<Caller[]> {
  const grants: Record<string, Grant> = {
    'the cluster dev': { role: 'cluster', cluster: 'dev' },
    'the cluster prod': { role: 'cluster', cluster: 'prod' },
    'a poller': { role: 'poller' },
    'a viewer': { role: 'viewer' },
    'a mirror': { role: 'mirror' },
    'a mirror of dev': { role: 'mirror', selector: 'environment=dev' },
    'an editor': { role: 'editor' },
    'an editor of dev': { role: 'editor', selector: 'environment in (dev,qa)' },
    'an editor of namespaces': { role: 'editor', types: ['namespaces'] },
    'an editor of clusters': { role: 'editor', types: ['clusters'] },
    'an editor of namespaces in dev': { role: 'editor', types: ['namespaces'], selector: 'environment=dev' },
    'an admin': { role: 'admin' },
  }
  assert.deepEqual(new Set(Object.values(grants).map(({ role }) => role)), new Set(ROLES))
  const never = newToken(
    { name: 'never', grant: { role: 'admin' }, expiresAt: undefined, createdBy: 'test' },
    new Date(),
  )
  const callers: Caller[] = [
    { name: 'nobody', token: null },
    { name: 'a wrong token', token: 'wrong' },
    { name: 'a token that was never kept', token: never.secret },
    { name: 'the read token of the environment', token: READ_TOKEN, grant: { role: 'viewer' } },
    { name: 'the write token of the environment', token: WRITE_TOKEN, grant: { role: 'admin' } },
  ]
  for (const [name, grant] of Object.entries(grants)) {
    callers.push({ name, token: await issue(service, nameOf(name), grant), grant })
  }
  return callers
}

/** Clusters that are gone, revisions to go back to, and a token to spare. */
async function prepare(service: TestService): Promise<World> {
  const { engine, types } = service
  await issue(service, SPARE.name, { role: 'viewer' })
  const write = async (...commands: Parameters<typeof engine.write>[0] & object[]): Promise<number> => {
    const written = await engine.write(commands as Parameters<typeof engine.write>[0], AUTHOR)
    assert.ok(written.ok, JSON.stringify(written))
    return written.value.revision
  }
  const gone = (tier: Tier) =>
    ({ op: 'delete', type: 'clusters', id: `gone-${tier}`, cascade: false, purge: false, path: '' }) as const
  const before = await write(...TIERS.map(gone))
  const edit = (tier: Tier) => {
    const patch = { annotations: { edited: 'yes' } }
    return write({ op: 'patch', type: 'namespaces', id: tier, patch, format: 'merge', path: '' })
  }
  const edits = { dev: await edit('dev'), prod: await edit('prod') }
  const running = {
    dev: await stage(engine, 'namespaces', 'dev'),
    prod: await stage(engine, 'namespaces', 'prod'),
  }
  const paused = {
    dev: await stage(engine, 'rolebindings', 'dev'),
    prod: await stage(engine, 'rolebindings', 'prod'),
  }
  const at = new Date().toISOString()
  for (const id of Object.values(paused))
    await write({ op: 'act_on_rollout', id, action: { kind: 'pause' }, by: 'test', at, path: '' })
  for (const tier of TIERS)
    await write({ op: 'hold_cluster', cluster: `held-${tier}`, reason: 'r', by: 'test', at, path: '' })
  return { types, edits, before, running, paused }
}

/** Starts a rollout that assigns a cluster of a tier what is staged; returns its id. */
async function stage(engine: Engine, type: string, tier: Tier): Promise<string> {
  const assign = {
    op: 'assign',
    type,
    cluster: `rolled-${tier}`,
    id: 'staged',
    reference: {},
    how: 'ensure',
    path: '',
  } as const
  const gates = { checks: [{ name: 'smoke' }] }
  const spec = { waves: [{ name: 'all', rest: true, gates, approval: { after: { count: 1 } } }] } as const
  const rollout = { strategy: undefined, spec, path: '/rollout/waves', operations: [] }
  const written = await engine.write([assign], AUTHOR, { rollout })
  assert.ok(written.ok, JSON.stringify(written))
  return `r${written.value.revision}`
}

/** What is done to rollouts, holds, freezes and strategies is not rolled back: who may do it is tried by previews and refusals. */
function isLasting({ path }: Operation): boolean {
  return /^\/(?:rollouts|holds|freezes|strategies)\b/.test(path)
}

/** Everything as it was, whatever a write has done. */
async function putBack(service: TestService, revision: number, callers: readonly Caller[]): Promise<void> {
  const body = { to_revision: revision, confirm: ['removals'] }
  const { status, text } = await service.call('POST', '/rollback', { body })
  assert.equal(status, 200, text)
  await service.call('DELETE', '/tokens/new')
  await service.call('POST', '/tokens', { body: SPARE })
  // A cluster that was purged comes back without its tokens.
  for (const caller of callers.filter(({ grant }) => grant?.role === 'cluster')) {
    const name = nameOf(caller.name)
    if ((await service.call('GET', `/tokens/${name}`)).status === 404)
      caller.token = await issue(service, name, caller.grant as Grant)
  }
}

/** What the token of a caller is called. */
function nameOf(caller: string): string {
  return caller.replaceAll(' ', '-')
}

async function ask(
  service: TestService,
  method: string,
  { path, body, streams }: Request,
  token: string | null,
): Promise<number> {
  if (!streams) return (await service.call(method, path, { token, body })).status
  const headers = token === null ? {} : { authorization: `Bearer ${token}` }
  const answer = await fetch(new URL(path, service.url), { method, headers })
  await answer.body?.cancel()
  return answer.status
}

function assertVerdict(expected: ReturnType<typeof verdict>, status: number, what: string): void {
  const isAsExpected = expected === 'ok' ? [200, 201, 202].includes(status) : status === expected
  assert.ok(isAsExpected, `${what} is answered ${status}, not ${expected}`)
}

function withDryRun(path: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}dry_run=true`
}

const EXTENDED = builtInTypes(EXAMPLE)

test('every route answers every caller as the table says, and what is refused changes nothing', async (t) => {
  const { service } = await startWatched('crud', EXTENDED, fleetOf(EXTENDED))
  t.after(() => service.stop())
  const { state } = service.engine
  const callers = await callersOf(service)
  const world = await prepare(service)
  const operations = await operationsOf(service)
  const start = state.revision

  for (const operation of operations.filter(({ method }) => method === 'GET')) {
    for (const request of requestsOf(world, operation)) {
      await Promise.all(
        callers.map(async (caller) => {
          const expected = verdict(operation.access, caller, request)
          const got = await ask(service, 'GET', request, caller.token)
          assertVerdict(expected, got, `GET ${request.path} by ${caller.name}`)
          const head = await service.call('HEAD', request.path, { token: caller.token })
          assertVerdict(expected, head.status, `HEAD ${request.path} by ${caller.name}`)
          assert.equal(head.text, '')
        }),
      )
    }
  }

  for (const operation of operations.filter(({ id }) => REPORTS.includes(id))) {
    const { revision } = state
    for (const request of requestsOf(world, operation))
      for (const caller of callers) {
        const status = await ask(service, operation.method, request, caller.token)
        assertVerdict(verdict(operation.access, caller, request), status, `${request.path} by ${caller.name}`)
      }
    assert.equal(state.revision, revision)
  }

  for (const operation of operations.filter(({ id, method }) => method !== 'GET' && !REPORTS.includes(id))) {
    const { method, access } = operation
    for (const request of requestsOf(world, operation)) {
      const { path, body } = request
      const wanted = callers.map((caller) => ({ caller, expected: verdict(access, caller, request) }))
      const { revision } = state
      await Promise.all(
        callers.map(async (caller) => {
          const what = `a preview of ${method} ${path} by ${caller.name}`
          const expected = verdict(access, caller, request, true)
          const preview = await service.call(method, withDryRun(path), { token: caller.token, body })
          assertVerdict(expected, preview.status, what)
          if (expected !== 'ok') return
          const mayNot = preview.body.warnings.some((text: string) =>
            text.startsWith('you may not do this: '),
          )
          assert.equal(mayNot, verdict(access, caller, request) !== 'ok', what)
          assert.ok(preview.body.change_count > 0, `${what} changes nothing`)
        }),
      )
      await Promise.all(
        wanted.map(async ({ caller, expected }) => {
          if (expected === 'ok') return
          const answer = await service.call(method, path, { token: caller.token, body })
          assertVerdict(expected, answer.status, `${method} ${path} by ${caller.name}`)
          assert.equal(answer.body.error, expected === 401 ? 'unauthorized' : 'forbidden')
          if (access !== 'write' || caller.grant?.role !== 'viewer') return
          const hint = 'this needs the role editor, and yours is viewer: you may preview it with dry_run=true'
          assert.equal(answer.body.message, hint)
        }),
      )
      assert.equal(state.revision, revision, `${method} ${path} did something that was refused`)
      for (const { caller, expected } of wanted) {
        if (expected !== 'ok' || isLasting(operation)) continue
        const now = state.revision
        const answer = await service.call(method, path, { token: caller.token, body })
        assertVerdict(expected, answer.status, `${method} ${path} by ${caller.name}: ${answer.text}`)
        assert.equal(state.revision, now + 1, `${method} ${path} by ${caller.name} did nothing`)
        await putBack(service, start, callers)
      }
    }
  }
})

test('a preview that is asked for in the body is one for whoever may preview', async (t) => {
  const { service } = await startWatched('crud', EXTENDED, fleetOf(EXTENDED))
  t.after(() => service.stop())
  const callers = await callersOf(service)
  const world = await prepare(service)
  const { revision } = service.engine.state
  const operations = (await operationsOf(service)).filter(({ id }) =>
    ['batch', 'rollback', 'revert_revision'].includes(id),
  )
  assert.equal(operations.length, 3)
  for (const { path, body, ...request } of operations.flatMap((each) => requestsOf(world, each))) {
    for (const caller of callers) {
      const expected = verdict('write', caller, { path, ...request }, true)
      const asked = { ...(body as JsonObject), dry_run: true }
      const answer = await service.call('POST', path, { token: caller.token, body: asked })
      assertVerdict(expected, answer.status, `a preview of ${path} by ${caller.name}`)
    }
  }
  assert.equal(service.engine.state.revision, revision)
})

test('in read-only mode the table holds for what is there, and nobody gets anything else', async (t) => {
  const crud = await startWatched('crud', EXTENDED)
  const described = await operationsOf(crud.service)
  await crud.service.stop()
  const { service } = await startWatched('read-only', EXTENDED, fleetOf(EXTENDED))
  t.after(() => service.stop())
  const callers = await callersOf(service)
  const world = await prepare(service)
  const { revision } = service.engine.state
  const there = new Set((await operationsOf(service)).map(({ id }) => id))
  for (const operation of described) {
    const { id, method, access } = operation
    for (const request of requestsOf(world, operation)) {
      const { path, body } = request
      // What is not there is so before anybody is asked who they are.
      const asking = there.has(id) ? callers : callers.filter(({ grant }) => !grant || grant.role === 'admin')
      await Promise.all(
        asking.map(async (caller) => {
          const { token } = caller
          const status = await ask(service, method, request, token)
          const what = `${method} ${path} by ${caller.name}`
          if (there.has(id)) return assertVerdict(verdict(access, caller, request), status, what)
          assert.equal(status, method === 'GET' ? 404 : 405, what)
          if (method === 'GET') return
          const preview = await service.call(method, withDryRun(path), { token, body })
          assert.equal(preview.status, 405, `a preview of ${what}`)
        }),
      )
    }
  }
  assert.equal(service.engine.state.revision, revision)
})
