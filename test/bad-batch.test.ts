import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { type Answer, builtInTypes, type Call, startService, type TestService } from './service.ts'

const POLL = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'
const PLAN = `sha256:${'0'.repeat(64)}`
const types = builtInTypes()
const FUTURE = '2999-01-01T00:00:00Z'
const IMPOSSIBLE_TIMES = [
  '2026-13-45T00:00:00Z',
  '2026-00-10T00:00:00Z',
  '2026-01-32T00:00:00Z',
  '2026-01-00T00:00:00Z',
  '2026-01-01T25:00:00Z',
  '2026-01-01T00:61:00Z',
  '2026-01-01T00:00:61Z',
  '2026-01-01T00:00:00+99:99',
]
const NOT_TIMES = [
  'garbage',
  'yesterday',
  '2026-01-01',
  '2026-01-01T00:00:00',
  '2026-01-01 00:00:00Z',
  '1767225600000000',
  '-1',
  '1.5',
  '0x10',
  '',
]
const NOT_PLANS = [
  '',
  'x',
  'sha256:',
  'sha256:abc',
  PLAN.toUpperCase(),
  '0'.repeat(64),
  `${PLAN}0`,
  ` ${PLAN}`,
  `sha512:${'0'.repeat(64)}`,
]
const NOT_LIMITS = ['-1', '10001', '1.5', 'all', '', '1e3', '99999999999999999999']

/** Text that is no selector, with the position where that shows. */
const NOT_SELECTORS: readonly (readonly [selector: string, position: number])[] = [
  ['', 1],
  ['   ', 4],
  ['=', 1],
  ['=x', 1],
  [',', 1],
  ['region,', 8],
  ['region,,env', 8],
  ['region eu', 8],
  ['region = eu env', 13],
  ['region=eu;env=dev', 10],
  ['region in', 10],
  ['region in eu', 11],
  ['region in (eu', 14],
  ['region in (eu us)', 15],
  ['region notin', 13],
  ['region = (eu)', 10],
  ['!', 2],
  ['!=x', 2],
  ['!!region', 2],
  ['region > many', 10],
  ['region<1.5', 8],
  ['(region)', 1],
  ['region="eu"', 8],
  ['größe=x', 3],
  ['-region=eu', 1],
  ['a/b/c=x', 1],
  [`${'x'.repeat(64)}=1`, 1],
  ['uses.clusters=one', 1],
  ['region=eu, uses.nothing=x', 12],
  ['uses.=x', 1],
  ['region=eu && env=dev', 11],
  ["region=eu' OR '1'='1", 10],
]

interface BadRequest extends Call {
  readonly is: string
  readonly on: `${string} /${string}`
  /** 400 unless told otherwise. */
  readonly status?: number
  readonly error?: string
  /** The path of one of the details. */
  readonly at?: string | RegExp
  /** What the message says. */
  readonly says?: RegExp
}

type Expected = Pick<BadRequest, 'at' | 'says' | 'status' | 'error'>

/** A batch whose second operation is the bad one: the first must not happen either. */
function second(is: string, operation: Json, expected: Expected): BadRequest {
  const first = { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 9 } }
  return { is, on: 'POST /batch', body: { operations: [first, operation] }, ...expected }
}

function whole(is: string, operations: Json, expected: Expected): BadRequest {
  return { is, on: 'POST /batch', body: { operations }, ...expected }
}

const fine = { op: 'patch', type: 'clusters', id: 'two', patch: { node_count: 9 } }
const namespace = (id: string) => ({ op: 'create', type: 'namespaces', document: { id } })
const cluster = (id: string, more: JsonObject = {}) => ({
  op: 'create',
  type: 'clusters',
  document: {
    id,
    cluster_name: id,
    cluster_dns: `${id}.k8s.example.com`,
    environment: 'dev',
    ...more,
  },
})
const unknown = { status: 404, error: 'not_found' }
const conflict = { status: 409, error: 'conflict' }
const stale = { status: 412, error: 'precondition_failed' }
/** The operation as a whole or something in it. */
const inSecond = /^\/operations\/1(?:\/|$)/

const envelopes: BadRequest[] = [
  ...[null, [], 1, 'operations', true, [fine]].map(
    (body): BadRequest => ({
      is: `a batch that is ${JSON.stringify(body)}`,
      on: 'POST /batch',
      body,
      at: '',
      says: /must be an object with a list of operations/,
    }),
  ),
  { is: 'no body', on: 'POST /batch', at: '', says: /is missing/ },
  { is: 'an empty body', on: 'POST /batch', raw: '', at: '', says: /is empty/ },
  { is: 'malformed JSON', on: 'POST /batch', raw: '{"operations":[', says: /JSON/ },
  {
    is: 'another content type',
    on: 'POST /batch',
    raw: '{}',
    headers: { 'content-type': 'text/plain' },
    status: 415,
    error: 'unsupported_media_type',
    says: /application\/json/,
  },
  {
    is: 'the content type of a JSON patch',
    on: 'POST /batch',
    body: { operations: [fine] },
    headers: { 'content-type': 'application/json-patch+json' },
    status: 415,
    error: 'unsupported_media_type',
    says: /application\/json/,
  },
  { is: 'no operations', on: 'POST /batch', body: {}, at: '/operations', says: /is required/ },
  whole('an empty list of operations', [], { at: '/operations', says: /must not be empty/ }),
  ...[null, {}, 'x', 1].map((operations) =>
    whole(`operations ${JSON.stringify(operations)}`, operations, {
      at: '/operations',
      says: /must be an array/,
    }),
  ),
  ...[null, 1, 'delete', [], true].map((operation) =>
    second(`an operation that is ${JSON.stringify(operation)}`, operation, {
      at: '/operations/1',
      says: /must be an object/,
    }),
  ),
  whole('more operations than a batch takes', new Array(100_001).fill({}), {
    at: '/operations',
    says: /at most 100000/,
  }),
  ...(
    [
      ['an unknown field', { dryrun: true }, '/dryrun', /unknown field: known are operations/],
      ['a dry_run that is text', { dry_run: 'true' }, '/dry_run', /must be a boolean/],
      ['an allow_empty that is a number', { allow_empty: 1 }, '/allow_empty', /must be a boolean/],
      ['a message that is a number', { message: 5 }, '/message', /must be a string/],
      ['a message that is null', { message: null }, '/message', /must be a string/],
      ['a message that is too long', { message: 'x'.repeat(1001) }, '/message', /1000/],
      ['a confirm that is text', { confirm: 'removals' }, '/confirm', /must be an array/],
      [
        'a confirm of an unknown word',
        { confirm: ['removals', 'all'] },
        '/confirm/1',
        /must be one of removals/,
      ],
      ['a confirm of a number', { confirm: [1] }, '/confirm/0', /must be/],
      ['a plan that is a number', { plan: 5 }, '/plan', /must be a string/],
      ['a plan that is null', { plan: null }, '/plan', /must be a string/],
      ['a negative impact_limit', { impact_limit: -1 }, '/impact_limit', />= 0/],
      ['an impact_limit that is too large', { impact_limit: 10_001 }, '/impact_limit', /<= 10000/],
      ['half an impact_limit', { impact_limit: 1.5 }, '/impact_limit', /must be an integer/],
      ['an impact_limit that is text', { impact_limit: '5' }, '/impact_limit', /must be an integer/],
    ] as const
  ).map(
    ([is, more, at, says]): BadRequest => ({
      is,
      on: 'POST /batch',
      body: { operations: [fine], ...more },
      at,
      says,
    }),
  ),
  ...NOT_PLANS.map(
    (plan): BadRequest => ({
      is: `plan ${JSON.stringify(plan)}`,
      on: 'POST /batch',
      body: { operations: [fine], plan },
      at: '/plan',
      says: /sha256: and 64 hex digits/,
    }),
  ),
]

const shapes: BadRequest[] = [
  second('an operation without op', {}, { at: '/operations/1/op', says: /is required: one of create/ }),
  ...['nope', 'CREATE', '', 'constructor', 'reset', 'undo', 'for_clusters', 5, null, ['create']].map((op) =>
    second(
      `op ${JSON.stringify(op)}`,
      { op, type: 'clusters', id: 'one' },
      {
        at: '/operations/1/op',
        says: /must be one of create, replace/,
      },
    ),
  ),
  ...(
    [
      ['create', { document: { id: 'new' } }],
      ['replace', { id: 'team-b', document: {} }],
      ['patch', { id: 'team-b', patch: {} }],
      ['delete', { id: 'team-b' }],
      ['restore', { id: 'team-b' }],
      ['assign', { ref: { id: 'team-b' }, clusters: ['two'] }],
      ['unassign', { id: 'team-a', clusters: ['one'] }],
    ] as const
  ).flatMap(([op, rest]) => [
    second(`${op} without a type`, { op, ...rest }, { at: '/operations/1/type', says: /is required/ }),
    ...['nope', 'cluster', 'Namespaces', '', 'toString'].map((type) =>
      second(
        `${op} of the unknown type "${type}"`,
        { op, type, ...rest },
        {
          at: '/operations/1/type',
          says: /unknown type.*known are/,
        },
      ),
    ),
    ...[5, null, ['namespaces'], {}].map((type) =>
      second(
        `${op} of the type ${JSON.stringify(type)}`,
        { op, type, ...rest },
        {
          at: '/operations/1/type',
          says: /must be a string/,
        },
      ),
    ),
    second(
      `${op} with an unknown field`,
      { op, type: 'namespaces', ...rest, colour: 'red' },
      {
        at: '/operations/1/colour',
        says: /unknown field: known are op, type/,
      },
    ),
  ]),
  second(
    'assign of a type that cannot be',
    { op: 'assign', type: 'clusters', ref: { id: 'one' }, selector: 'id' },
    {
      at: '/operations/1/type',
      says: /cannot be assigned.*known are namespaces/,
    },
  ),
  second(
    'unassign of a type that cannot be',
    { op: 'unassign', type: 'clusters', id: 'one', selector: 'id' },
    {
      at: '/operations/1/type',
      says: /cannot be assigned/,
    },
  ),
  ...(
    [
      ['create without a document', { op: 'create', type: 'namespaces' }, 'document', /is required/],
      [
        'create of a list',
        { op: 'create', type: 'namespaces', document: [] },
        'document',
        /must be an object/,
      ],
      [
        'create of null',
        { op: 'create', type: 'namespaces', document: null },
        'document',
        /must be an object/,
      ],
      [
        'create of text',
        { op: 'create', type: 'namespaces', document: 'new' },
        'document',
        /must be an object/,
      ],
      [
        'create with an id beside the document',
        { op: 'create', type: 'namespaces', id: 'x', document: {} },
        'id',
        /unknown field/,
      ],
      ['create with if_revision', { ...namespace('new'), if_revision: 1 }, 'if_revision', /unknown field/],
      ['replace without an id', { op: 'replace', type: 'namespaces', document: {} }, 'id', /is required/],
      [
        'replace without a document',
        { op: 'replace', type: 'namespaces', id: 'team-b' },
        'document',
        /is required/,
      ],
      [
        'replace by selector',
        { op: 'replace', type: 'clusters', id: 'one', selector: 'id', document: {} },
        'selector',
        /unknown field/,
      ],
      ['patch without a patch', { op: 'patch', type: 'namespaces', id: 'team-b' }, 'patch', /is required/],
      [
        'patch with text',
        { op: 'patch', type: 'namespaces', id: 'team-b', patch: 'x' },
        'patch',
        /must be an object or an array/,
      ],
      [
        'patch with null',
        { op: 'patch', type: 'namespaces', id: 'team-b', patch: null },
        'patch',
        /must be an object or an array/,
      ],
      ['delete of an empty id', { op: 'delete', type: 'namespaces', id: '' }, 'id', /must not be empty/],
      ['delete of the id null', { op: 'delete', type: 'namespaces', id: null }, 'id', /must be a string/],
      ['delete of the id 5', { op: 'delete', type: 'namespaces', id: 5 }, 'id', /must be a string/],
      [
        'delete of several ids',
        { op: 'delete', type: 'namespaces', id: ['team-a', 'team-b'] },
        'id',
        /must be a string/,
      ],
      [
        'a cascade that is text',
        { op: 'delete', type: 'namespaces', id: 'team-b', cascade: 'true' },
        'cascade',
        /must be a boolean/,
      ],
      [
        'a purge that is a number',
        { op: 'delete', type: 'clusters', id: 'two', purge: 1 },
        'purge',
        /must be a boolean/,
      ],
      [
        'restore by selector',
        { op: 'restore', type: 'clusters', selector: 'id' },
        'selector',
        /unknown field/,
      ],
      [
        'restore with allow_empty',
        { op: 'restore', type: 'clusters', id: 'two', allow_empty: true },
        'allow_empty',
        /unknown field/,
      ],
      ['assign without a ref', { op: 'assign', type: 'namespaces', clusters: ['two'] }, 'ref', /is required/],
      [
        'assign with an id instead of a ref',
        { op: 'assign', type: 'namespaces', id: 'team-b', clusters: ['two'] },
        'id',
        /ref is required/,
      ],
      [
        'assign of text',
        { op: 'assign', type: 'namespaces', ref: 'team-b', clusters: ['two'] },
        'ref',
        /must be an object/,
      ],
      [
        'assign of a ref without an id',
        { op: 'assign', type: 'namespaces', ref: {}, clusters: ['two'] },
        'ref/id',
        /is required/,
      ],
      [
        'assign of a ref with a number as id',
        { op: 'assign', type: 'namespaces', ref: { id: 5 }, clusters: ['two'] },
        'ref/id',
        /id of what to assign/,
      ],
      [
        'a merge that is text',
        { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, clusters: ['two'], merge: 'yes' },
        'merge',
        /must be a boolean/,
      ],
      [
        'unassign without an id',
        { op: 'unassign', type: 'namespaces', clusters: ['one'] },
        'id',
        /is required/,
      ],
      [
        'patch_values without a component',
        { op: 'patch_values', values: {}, clusters: ['one'] },
        'component',
        /is required/,
      ],
      [
        'patch_values without values',
        { op: 'patch_values', component: 'a', clusters: ['one'] },
        'values',
        /is required/,
      ],
      [
        'patch_values with a list',
        { op: 'patch_values', component: 'a', values: [], clusters: ['one'] },
        'values',
        /must be an object/,
      ],
      [
        'patch_values with a type',
        { op: 'patch_values', type: 'platform_components', component: 'a', values: {}, clusters: ['one'] },
        'type',
        /unknown field/,
      ],
      [
        'patch_values with a replace that is text',
        { op: 'patch_values', component: 'a', values: {}, clusters: ['one'], replace: 'no' },
        'replace',
        /must be a boolean/,
      ],
      [
        'an allow_empty that is text',
        { op: 'delete', type: 'clusters', selector: 'id', allow_empty: 'yes' },
        'allow_empty',
        /must be a boolean/,
      ],
      ['an if_revision of 0', { ...fine, if_revision: 0 }, 'if_revision', />= 1/],
      ['an if_revision that is text', { ...fine, if_revision: '"1"' }, 'if_revision', /must be an integer/],
      ['half an if_revision', { ...fine, if_revision: 1.5 }, 'if_revision', /must be an integer/],
      ['an if_revision of null', { ...fine, if_revision: null }, 'if_revision', /must be an integer/],
      [
        'an if_revision on assign',
        { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, clusters: ['two'], if_revision: 1 },
        'if_revision',
        /unknown field/,
      ],
    ] as const
  ).map(([is, operation, field, says]) =>
    second(is, operation as Json, { at: `/operations/1/${field}`, says }),
  ),
]

/** Operations that want clusters, without saying which. */
const ON_CLUSTERS: readonly JsonObject[] = [
  { op: 'patch', type: 'clusters', patch: { node_count: 1 } },
  { op: 'delete', type: 'clusters' },
  { op: 'assign', type: 'namespaces', ref: { id: 'team-b' } },
  { op: 'unassign', type: 'namespaces', id: 'team-a' },
  { op: 'patch_values', component: 'a', values: { x: '1' } },
]

const targets: BadRequest[] = [
  ...ON_CLUSTERS.flatMap((operation) => {
    const name = `${operation.op}`
    const own = (is: string, more: JsonObject, at: string, says: RegExp): BadRequest =>
      second(`${name}: ${is}`, { ...operation, ...more }, { at: `/operations/1${at}`, says })
    return [
      own('no target', {}, '', /names no target: give .*clusters or selector/),
      own('clusters and selector', { clusters: ['one'], selector: 'id' }, '', /give only one of/),
      own('no clusters', { clusters: [] }, '/clusters', /must not be empty/),
      own('a cluster twice', { clusters: ['one', 'two', 'one'] }, '/clusters/2', /duplicate/),
      own('clusters as text', { clusters: 'one' }, '/clusters', /must be an array/),
      own('a number among clusters', { clusters: ['one', 5] }, '/clusters/1', /must be a string/),
      own('null among clusters', { clusters: [null] }, '/clusters/0', /must be a string/),
      own('a selector that is a number', { selector: 5 }, '/selector', /must be a string/),
      own('a selector that is a list', { selector: ['id'] }, '/selector', /must be a string/),
      own('a selector that matches nothing', { selector: 'id=nobody' }, '/selector', /matches no cluster/),
      own('allow_empty without a selector', { allow_empty: true }, '', /names no target/),
      second(
        `${name}: an unknown cluster`,
        { ...operation, clusters: ['one', 'nobody'] },
        {
          ...unknown,
          at: inSecond,
          says: /no cluster "nobody"|not assigned/,
        },
      ),
    ]
  }),
  ...NOT_SELECTORS.map(([selector, position]) =>
    second(
      `selector ${JSON.stringify(selector)}`,
      { op: 'delete', type: 'clusters', selector },
      {
        at: '/operations/1/selector',
        says: new RegExp(`\\(at position ${position}\\)`),
      },
    ),
  ),
  ...(['patch', 'delete'] as const).flatMap((op) =>
    (
      [
        [{ id: 'one', selector: 'id' }, /id and selector/],
        [{ id: 'one', clusters: ['two'] }, /id and clusters/],
        [{ id: 'one', clusters: ['two'], selector: 'id' }, /id and clusters and selector/],
      ] as const
    ).map(([given, says]) =>
      second(
        `${op} with ${Object.keys(given).join(' and ')}`,
        { op, type: 'clusters', ...given, ...(op === 'patch' && { patch: {} }) } as Json,
        { at: '/operations/1', says },
      ),
    ),
  ),
  ...['namespaces', 'platform_components', 'rolebindings'].flatMap((type) =>
    (
      [
        ['selector', { selector: 'id' }],
        ['clusters', { clusters: ['one'] }],
      ] as const
    ).flatMap(([field, target]) => [
      second(
        `patch of ${type} by ${field}`,
        { op: 'patch', type, patch: {}, ...target },
        {
          at: `/operations/1/${field}`,
          says: new RegExp(`documents of ${type} are named by id`),
        },
      ),
      second(
        `delete of ${type} by ${field}`,
        { op: 'delete', type, ...target },
        {
          at: `/operations/1/${field}`,
          says: /are named by id/,
        },
      ),
    ]),
  ),
  second(
    'restore with id and clusters',
    { op: 'restore', type: 'clusters', id: 'one', clusters: ['two'] },
    {
      at: '/operations/1',
      says: /give only one of/,
    },
  ),
  second(
    'restore of nothing',
    { op: 'restore', type: 'clusters' },
    { at: '/operations/1', says: /no target/ },
  ),
  second(
    'unassign from clusters none of which has it',
    { op: 'unassign', type: 'namespaces', id: 'team-b', selector: 'id' },
    {
      at: '/operations/1/selector',
      says: /matches 2 clusters, none of which is assigned "team-b"/,
    },
  ),
  second(
    'merge on clusters none of which has it',
    { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, merge: true, selector: 'id' },
    {
      at: '/operations/1/selector',
      says: /none of which is assigned "team-b"/,
    },
  ),
  second(
    'values for a component that none has',
    { op: 'patch_values', component: 'c', values: { x: '1' }, selector: 'id' },
    {
      at: '/operations/1/selector',
      says: /none of which is assigned "c"/,
    },
  ),
  second(
    'unassign where it is not',
    { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['one', 'two'] },
    {
      ...unknown,
      at: inSecond,
      says: /"team-a" is not assigned to cluster "two"/,
    },
  ),
  second(
    'merge where it is not',
    {
      op: 'assign',
      type: 'platform_components',
      ref: { id: 'a', enabled: false },
      merge: true,
      clusters: ['one', 'two'],
    },
    {
      ...unknown,
      at: inSecond,
      says: /"a" is not assigned to cluster "two"/,
    },
  ),
  second(
    'values where it is not',
    { op: 'patch_values', component: 'a', values: { x: '1' }, clusters: ['one', 'two'] },
    {
      ...unknown,
      at: inSecond,
      says: /"a" is not assigned to cluster "two"/,
    },
  ),
]

const contents: BadRequest[] = [
  second(
    'an unknown document to replace',
    { op: 'replace', type: 'namespaces', id: 'nobody', document: {} },
    {
      ...unknown,
      at: inSecond,
      says: /no namespace "nobody"/,
    },
  ),
  second(
    'an unknown document to patch',
    { op: 'patch', type: 'rolebindings', id: 'nobody', patch: {} },
    {
      ...unknown,
      at: inSecond,
      says: /no role binding "nobody"/,
    },
  ),
  second(
    'an unknown document to delete',
    { op: 'delete', type: 'platform_components', id: 'nobody' },
    {
      ...unknown,
      at: inSecond,
      says: /no platform component "nobody"/,
    },
  ),
  second(
    'an unknown cluster to restore',
    { op: 'restore', type: 'clusters', id: 'nobody' },
    {
      ...unknown,
      at: inSecond,
      says: /no deleted cluster "nobody"/,
    },
  ),
  second(
    'a live cluster to restore',
    { op: 'restore', type: 'clusters', id: 'one' },
    {
      ...conflict,
      at: inSecond,
      says: /is not deleted/,
    },
  ),
  second(
    'a namespace to restore',
    { op: 'restore', type: 'namespaces', id: 'team-a' },
    {
      ...conflict,
      at: inSecond,
      says: /is not deleted/,
    },
  ),
  second('a bad id', namespace('Not A Name'), { at: '/operations/1/document/id', says: /RFC 1123/ }),
  second(
    'no id',
    { op: 'create', type: 'namespaces', document: {} },
    {
      at: '/operations/1/document/id',
      says: /is required/,
    },
  ),
  second('a bad field', cluster('new', { environment: 'moon' }), {
    at: '/operations/1/document/environment',
    says: /must be one of dev, qa, uat, prod, not "moon"/,
  }),
  second('an unknown field', cluster('new', { colour: 'red' }), {
    at: '/operations/1/document/colour',
    says: /unknown field/,
  }),
  second(
    'another id than the one to replace',
    { op: 'replace', type: 'namespaces', id: 'team-b', document: { id: 'team-c' } },
    {
      at: '/operations/1/document/id',
      says: /must be "team-b"/,
    },
  ),
  second(
    'another id in a patch',
    { op: 'patch', type: 'namespaces', id: 'team-b', patch: { id: 'team-c' } },
    {
      at: '/operations/1/patch/id',
      says: /must be "team-b"/,
    },
  ),
  second(
    'a patch to a bad value',
    { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: -1 } },
    {
      at: '/operations/1/patch/node_count',
    },
  ),
  second(
    'a patch of all clusters to one DNS name',
    { op: 'patch', type: 'clusters', selector: 'id', patch: { cluster_dns: 'x.example.com' } },
    {
      ...conflict,
      at: '/operations/1/patch/cluster_dns',
      says: /is the DNS name of/,
    },
  ),
  second('the DNS name of another', cluster('new', { cluster_dns: 'ONE.k8s.example.com' }), {
    ...conflict,
    at: '/operations/1/document/cluster_dns',
    says: /is the DNS name of cluster "one" already/,
  }),
  second(
    'a JSON patch of nonsense',
    { op: 'patch', type: 'clusters', id: 'one', patch: [{ op: 'burn', path: '/labels' }] },
    {
      at: '/operations/1/patch/0',
      says: /is not one of the operations of RFC 6902: "op" \(add, /,
    },
  ),
  second(
    'a JSON patch without a path',
    { op: 'patch', type: 'clusters', id: 'one', patch: [{ op: 'remove' }] },
    {
      at: '/operations/1/patch/0',
      says: /RFC 6902/,
    },
  ),
  second(
    'a JSON patch of something that is not there',
    { op: 'patch', type: 'clusters', id: 'one', patch: [{ op: 'remove', path: '/labels/nope' }] },
    {
      at: '/operations/1/patch/0',
      says: /cannot be applied/,
    },
  ),
  second(
    'a JSON patch whose test fails',
    {
      op: 'patch',
      type: 'clusters',
      id: 'one',
      patch: [{ op: 'test', path: '/environment', value: 'prod' }],
    },
    {
      ...conflict,
      at: '/operations/1/patch/0',
      says: /test that does not hold/,
    },
  ),
  second(
    'an unknown document to assign',
    { op: 'assign', type: 'namespaces', ref: { id: 'nobody' }, clusters: ['two'] },
    {
      at: '/operations/1/ref/id',
      says: /unknown namespace "nobody"/,
    },
  ),
  second(
    'an unknown field in a ref',
    { op: 'assign', type: 'namespaces', ref: { id: 'team-b', colour: 'red' }, clusters: ['two'] },
    {
      at: '/operations/1/ref/colour',
      says: /unknown field/,
    },
  ),
  second(
    'a bad field in a ref',
    { op: 'assign', type: 'platform_components', ref: { id: 'a', enabled: 'no' }, clusters: ['two'] },
    {
      at: '/operations/1/ref/enabled',
      says: /must be a boolean/,
    },
  ),
  second(
    'values that are no strings',
    { op: 'patch_values', component: 'a', values: { replicas: 3 }, clusters: ['one'] },
    {
      at: '/operations/1/values/replicas',
      says: /must be a string: write "3"/,
    },
  ),
  second(
    'values below values',
    { op: 'patch_values', component: 'a', values: { ui: { color: 'red' } }, selector: 'id' },
    {
      at: '/operations/1/values/ui',
      says: /one value for each path/,
    },
  ),
  second(
    'patches for a component that is not assigned',
    { op: 'patch', type: 'clusters', id: 'two', patch: { patches: { a: { x: '1' } } } },
    {
      at: '/operations/1/patch/patches/a',
      says: /not assigned/,
    },
  ),
  second(
    'a dependency that does not exist',
    { op: 'patch', type: 'platform_components', id: 'a', patch: { depends_on: ['nobody'] } },
    {
      at: '/operations/1/patch/depends_on/0',
      says: /unknown platform component "nobody"/,
    },
  ),
  second(
    'dependencies in a circle',
    { op: 'patch', type: 'platform_components', id: 'a', patch: { depends_on: ['c'] } },
    {
      at: '/operations/1/patch/depends_on/0',
      says: /cycle/,
    },
  ),
  second(
    'a definition in use to delete',
    { op: 'delete', type: 'namespaces', id: 'team-a' },
    {
      ...conflict,
      at: '/clusters/one',
      says: /in use by 1.*clusters\/one/,
    },
  ),
  second(
    'an unknown field named like a method',
    { ...fine, toString: 'x' },
    {
      at: '/operations/1/toString',
      says: /unknown field/,
    },
  ),
  {
    is: '__proto__ in an operation',
    on: 'POST /batch',
    raw: '{"operations":[{"op":"delete","type":"clusters","id":"two","__proto__":{"purge":true}}]}',
    at: '/operations/0/__proto__',
    says: /reserved key/,
  },
  {
    is: '__proto__ in a batch',
    on: 'POST /batch',
    raw: '{"__proto__":{"confirm":["removals"]},"operations":[{"op":"delete","type":"clusters","id":"two"}]}',
    at: '/__proto__',
    says: /reserved key/,
  },
  ...['__proto__', 'constructor', 'prototype'].flatMap((key): BadRequest[] => [
    {
      is: `${key} in a document`,
      on: 'POST /batch',
      raw: `{"operations":[{"op":"create","type":"namespaces","document":{"id":"new","labels":{"${key}":"x"}}}]}`,
      at: `/operations/0/document/labels/${key}`,
      says: /reserved key/,
    },
    {
      is: `${key} in values`,
      on: 'POST /batch',
      raw: `{"operations":[{"op":"patch_values","component":"a","clusters":["one"],"values":{"${key}":"x"}}]}`,
      at: `/operations/0/values/${key}`,
      says: /reserved key/,
    },
    {
      is: `${key} in a ref`,
      on: 'POST /batch',
      raw: `{"operations":[{"op":"assign","type":"namespaces","clusters":["two"],"ref":{"id":"team-b","${key}":{}}}]}`,
      at: `/operations/0/ref/${key}`,
      says: /reserved key/,
    },
    {
      is: `${key} by a JSON patch`,
      on: 'POST /batch',
      body: {
        operations: [
          { op: 'patch', type: 'clusters', id: 'one', patch: [{ op: 'add', path: `/${key}/x`, value: 1 }] },
        ],
      },
      at: '/operations/0/patch/0',
    },
  ]),
  second('a NUL character', namespace('a\0b'), { at: '/operations/1/document/id', says: /NUL/ }),
  second(
    'a number beyond 2^53',
    { ...fine, patch: { node_count: 2 ** 60 } },
    {
      at: '/operations/1/patch/node_count',
      says: /2\^53/,
    },
  ),
]

const assignB = { op: 'assign', type: 'namespaces', ref: { id: 'team-b' }, clusters: ['two'] }
const deleteB = { op: 'delete', type: 'namespaces', id: 'team-b' }
const contradicts = (i: number): Expected => ({
  at: `/operations/${i}/ref/id`,
  says: /assigns namespace "team-b", which the same write deletes/,
})

const contradictions: BadRequest[] = [
  whole('assign, then delete', [assignB, deleteB], contradicts(0)),
  whole('assign, then delete with cascade', [assignB, { ...deleteB, cascade: true }], contradicts(0)),
  whole('delete, then assign', [deleteB, assignB], contradicts(1)),
  whole('delete with cascade, then assign', [{ ...deleteB, cascade: true }, assignB], contradicts(1)),
  whole(
    'create, assign and delete',
    [namespace('new'), { ...assignB, ref: { id: 'new' } }, { ...deleteB, id: 'new' }],
    {
      at: '/operations/1/ref/id',
      says: /assigns namespace "new", which the same write deletes/,
    },
  ),
  whole(
    'delete a component and assign it by selector',
    [
      { op: 'assign', type: 'platform_components', ref: { id: 'c' }, selector: 'id' },
      { op: 'delete', type: 'platform_components', id: 'c', cascade: true },
    ],
    { at: '/operations/0/ref/id', says: /platform component "c", which the same write deletes/ },
  ),
  whole('create what exists', [namespace('team-a')], {
    ...conflict,
    at: '/operations/0',
    says: /"team-a" exists already/,
  }),
  whole('create twice', [namespace('new'), namespace('new')], {
    ...conflict,
    at: '/operations/1',
    says: /"new" exists already/,
  }),
  whole(
    'two clusters of one DNS name',
    [cluster('new'), cluster('other', { cluster_dns: 'new.k8s.example.com' })],
    {
      ...conflict,
      says: /is the DNS name of/,
    },
  ),
  whole('delete twice', [deleteB, deleteB], {
    ...unknown,
    at: '/operations/1',
    says: /no namespace "team-b"/,
  }),
  whole('patch after delete', [deleteB, { op: 'patch', type: 'namespaces', id: 'team-b', patch: {} }], {
    ...unknown,
    at: '/operations/1',
  }),
  whole(
    'assign to a cluster that is deleted before',
    [{ op: 'delete', type: 'clusters', id: 'two' }, assignB],
    {
      ...unknown,
      at: /^\/operations\/1(?:\/|$)/,
      says: /no cluster "two"/,
    },
  ),
  whole(
    'assign before the document is created and never so',
    [{ ...assignB, ref: { id: 'later' } }, namespace('earlier')],
    {
      at: '/operations/0/ref/id',
      says: /unknown namespace "later"/,
    },
  ),
  whole(
    'unassign twice',
    [
      { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['one'] },
      { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['one'] },
    ],
    { ...unknown, at: /^\/operations\/1(?:\/|$)/, says: /not assigned/ },
  ),
  whole(
    'select by what an earlier operation took away',
    [
      { op: 'patch', type: 'clusters', id: 'one', patch: { environment: 'qa' } },
      { op: 'delete', type: 'clusters', selector: 'environment=dev' },
    ],
    { at: '/operations/1/selector', says: /matches no cluster/ },
  ),
  whole(
    'an if_revision that does not hold',
    [fine, { op: 'delete', type: 'clusters', id: 'one', if_revision: 7 }],
    {
      ...stale,
      at: /^\/operations\/1(?:\/|$)/,
      says: /cluster "one" is at revision 1/,
    },
  ),
  whole(
    'an if_revision of a document that is not there',
    [{ op: 'replace', type: 'namespaces', id: 'nobody', document: {}, if_revision: 1 }],
    {
      ...stale,
      at: /^\/operations\/0(?:\/|$)/,
      says: /does not exist/,
    },
  ),
  whole(
    'the same if_revision twice, when the first changes the document',
    [
      { ...fine, if_revision: 1 },
      { ...fine, patch: { node_count: 10 }, if_revision: 1 },
    ],
    { ...stale, at: /^\/operations\/1(?:\/|$)/ },
  ),
]

const rollbacks: BadRequest[] = [
  ...[null, [], 5, 'x'].map(
    (body): BadRequest => ({
      is: `a body that is ${JSON.stringify(body)}`,
      on: 'POST /rollback',
      body,
      at: '',
      says: /must be an object/,
    }),
  ),
  { is: 'no body', on: 'POST /rollback', at: '', says: /is missing/ },
  ...(
    [
      ['neither to_revision nor to_time', {}, '', /needs one of to_revision and to_time/],
      [
        'both to_revision and to_time',
        { to_revision: 1, to_time: '2020-01-01T00:00:00Z' },
        '',
        /needs one of/,
      ],
      ['a negative revision', { to_revision: -1 }, '/to_revision', />= 0/],
      ['half a revision', { to_revision: 1.5 }, '/to_revision', /must be an integer/],
      ['a revision as text', { to_revision: '1' }, '/to_revision', /must be an integer/],
      ['no revision', { to_revision: null }, '/to_revision', /must be an integer/],
      ['a revision to come', { to_revision: 99 }, '/to_revision', /still to come: the newest is 1/],
      ['a time to come', { to_time: FUTURE }, '/to_time', /in the future/],
      ['a time as a number', { to_time: 5 }, '/to_time', /must be a string/],
      [
        'an unknown field',
        { to_revision: 1, cluster: 'one' },
        '/cluster',
        /unknown field: known are to_revision/,
      ],
      ['operations', { to_revision: 1, operations: [] }, '/operations', /unknown field/],
      [
        'an unknown type',
        { to_revision: 1, types: ['clusters', 'nope'] },
        '/types/1',
        /unknown type: known are/,
      ],
      ['no types', { to_revision: 1, types: [] }, '/types', /must not be empty/],
      ['types as text', { to_revision: 1, types: 'clusters' }, '/types', /must be an array/],
      ['a type twice', { to_revision: 1, types: ['clusters', 'clusters'] }, '/types/1', /duplicate/],
      ['a number as type', { to_revision: 1, types: [5] }, '/types/0', /must be a string/],
      [
        'an unknown id',
        { to_revision: 1, ids: ['one', 'nobody'] },
        '/ids/1',
        /names no document, now or then: "nobody"/,
      ],
      [
        'an id of another type',
        { to_revision: 1, types: ['namespaces'], ids: ['one'] },
        '/ids/0',
        /names no document/,
      ],
      ['no ids', { to_revision: 1, ids: [] }, '/ids', /must not be empty/],
      ['an id twice', { to_revision: 1, ids: ['one', 'one'] }, '/ids/1', /duplicate/],
      ['ids as text', { to_revision: 1, ids: 'one' }, '/ids', /must be an array/],
      [
        'a selector that matches nothing',
        { to_revision: 1, selector: 'id=nobody' },
        '/selector',
        /matches no cluster/,
      ],
      [
        'a selector beside another type',
        { to_revision: 1, selector: 'id', types: ['namespaces'] },
        '/types',
        /does not go with selector/,
      ],
      [
        'a selector beside several types',
        { to_revision: 1, selector: 'id', types: ['clusters', 'namespaces'] },
        '/types',
        /does not go with selector/,
      ],
      ['a selector that is a number', { to_revision: 1, selector: 5 }, '/selector', /must be a string/],
      [
        'an unknown word to confirm',
        { to_revision: 1, confirm: ['all'] },
        '/confirm/0',
        /must be one of removals/,
      ],
      ['a plan that is none', { to_revision: 1, plan: 'x' }, '/plan', /64 hex digits/],
      ['a dry_run that is text', { to_revision: 1, dry_run: 'yes' }, '/dry_run', /must be a boolean/],
      ['a long message', { to_revision: 1, message: 'x'.repeat(1001) }, '/message', /1000/],
    ] as const
  ).map(
    ([is, body, at, says]): BadRequest => ({
      is,
      on: 'POST /rollback',
      body: body as unknown as Json,
      at,
      says,
    }),
  ),
  ...NOT_SELECTORS.map(
    ([selector, position]): BadRequest => ({
      is: `selector ${JSON.stringify(selector)}`,
      on: 'POST /rollback',
      body: { to_revision: 1, selector },
      at: '/selector',
      says: new RegExp(`\\(at position ${position}\\)`),
    }),
  ),
  ...[...IMPOSSIBLE_TIMES, ...NOT_TIMES].map(
    (to_time): BadRequest => ({
      is: `to_time ${JSON.stringify(to_time)}`,
      on: 'POST /rollback',
      body: { to_time },
      at: '/to_time',
      says: /must be an RFC 3339 time/,
    }),
  ),
  {
    is: '__proto__',
    on: 'POST /rollback',
    raw: '{"__proto__":{"to_revision":0}}',
    at: '/__proto__',
    says: /reserved key/,
  },
]

const reverts: BadRequest[] = [
  ...['0', '99', '-1', '1.5', '1e1', 'x', 'verify', '0x1', '%20', '9'.repeat(15), '9'.repeat(20)].map(
    (revision): BadRequest => ({
      is: `revision ${revision}`,
      on: `POST /revisions/${revision}/revert`,
      ...unknown,
      says: /no revision/,
    }),
  ),
  ...(
    [
      ['a list', [], '', /must be an object/],
      ['text', 'x', '', /must be an object/],
      ['null', null, '', /must be an object/],
      ['an unknown field', { to_revision: 1 }, '/to_revision', /unknown field: known are message/],
      ['a message that is a number', { message: 5 }, '/message', /must be a string/],
      ['an unknown word to confirm', { confirm: ['yes'] }, '/confirm/0', /must be one of removals/],
      ['a plan that is none', { plan: 'x' }, '/plan', /64 hex digits/],
      ['a dry_run that is text', { dry_run: 'yes' }, '/dry_run', /must be a boolean/],
      ['an impact_limit that is text', { impact_limit: '1' }, '/impact_limit', /must be an integer/],
    ] as const
  ).map(
    ([is, body, at, says]): BadRequest => ({
      is,
      on: 'POST /revisions/1/revert',
      body: body as unknown as Json,
      at,
      says,
    }),
  ),
]

const WRITES: readonly Pick<BadRequest, 'on' | 'body'>[] = [
  { on: 'POST /batch', body: { operations: [fine] } },
  { on: 'POST /rollback', body: { to_revision: 0 } },
  { on: 'POST /revisions/1/revert' },
  { on: 'POST /namespaces', body: { id: 'new' } },
  { on: 'PATCH /clusters/one', body: { node_count: 1 } },
  { on: 'DELETE /clusters/one' },
  { on: 'PUT /clusters/two/namespaces/team-b' },
  { on: 'PATCH /clusters/one/patches/a', body: { x: '1' } },
]

const writeParameters: BadRequest[] = WRITES.flatMap(({ on, ...call }): BadRequest[] => {
  const bad = (query: string, at: string, says: RegExp): BadRequest => ({
    is: query,
    on: `${on}?${query}`,
    ...call,
    at,
    says,
  })
  return [
    ...NOT_PLANS.map((plan) => bad(`plan=${encodeURIComponent(plan)}`, '?plan', /64 hex digits/)),
    ...['', 'all', 'Removals', 'removals,all', 'true'].map((word) =>
      bad(`confirm=${word}`, '?confirm', /must be one of removals, finish, not/),
    ),
    ...NOT_LIMITS.map((limit) =>
      bad(`impact_limit=${limit}`, '?impact_limit', /must be a whole number from 0 to 10000/),
    ),
    ...['', '1', 'yes', 'TRUE'].map((flag) => bad(`dry_run=${flag}`, '?dry_run', /must be true or false/)),
    bad('dry-run=true', '?dry-run', /unknown parameter: known are .*dry_run/),
    bad('dryRun=true', '?dryRun', /unknown parameter/),
    bad('at=1', '?at', /unknown parameter/),
    bad('selector=id', '?selector', /unknown parameter/),
    bad('confirm=removals&confirm=removals', '?confirm', /more than once/),
    bad('dry_run=true&dry_run=false', '?dry_run', /more than once/),
    bad(`plan=${PLAN}&plan=${PLAN}`, '?plan', /more than once/),
    bad('confirm=%ff', '?', /percent-encoded/),
  ]
})

const READS_AT = [
  '/clusters',
  '/namespaces',
  '/clusters/one',
  '/namespaces/team-a',
  '/clusters/one/platform_components/a',
  '/clusters/one/patches/a',
  '/clusters/one/inputs/platform-components',
]

const reads: BadRequest[] = [
  ...READS_AT.flatMap((path) =>
    (
      [
        ...[...IMPOSSIBLE_TIMES, ...NOT_TIMES.filter((text) => !/^\d+$/.test(text))].map(
          (at) => [at, /must be a revision or an RFC 3339 time/] as const,
        ),
        ['2', /still to come: the newest is 1/],
        ['999999999999999', /still to come/],
        ['9999999999999999', /must be a revision or/],
        [FUTURE, /in the future/],
      ] as const
    ).map(
      ([at, says]): BadRequest => ({
        is: `at ${JSON.stringify(at)}`,
        on: `GET ${path}?at=${encodeURIComponent(at)}` as BadRequest['on'],
        at: '?at',
        says,
      }),
    ),
  ),
  ...NOT_SELECTORS.map(
    ([selector, position]): BadRequest => ({
      is: `selector ${JSON.stringify(selector)}`,
      on: `GET /clusters?selector=${encodeURIComponent(selector)}`,
      at: '?selector',
      says: new RegExp(`\\(at position ${position}\\)`),
    }),
  ),
  {
    is: 'two selectors',
    on: 'GET /clusters?selector=id&selector=id',
    at: '?selector',
    says: /more than once/,
  },
  ...['namespaces', 'platform_components', 'rolebindings'].map(
    (type): BadRequest => ({
      is: 'a selector where there is none',
      on: `GET /${type}?selector=id`,
      at: '?selector',
      says: /unknown parameter/,
    }),
  ),
  ...(
    [
      ['limit=-1', '?limit', /whole number from 0 to 1000/],
      ['limit=1001', '?limit', /whole number from 0 to 1000/],
      ['limit=ten', '?limit', /whole number/],
      ['before=-1', '?before', /whole number of 0 or more/],
      ['before=x', '?before', /whole number/],
      ['type=nope', '?type', /unknown type: known are applied_sets, clusters/],
      ['type=', '?type', /unknown type/],
      ['type=clusters&type=namespaces', '?type', /more than once/],
      ['actor=a&actor=b', '?actor', /more than once/],
      ['offset=1', '?offset', /unknown parameter: known are .*since/],
      ['user=ann', '?user', /unknown parameter/],
      ['selector=%28', '?selector', /./],
      ...[...IMPOSSIBLE_TIMES, ...NOT_TIMES].flatMap(
        (time) =>
          [
            [`since=${encodeURIComponent(time)}`, '?since', /must be an RFC 3339 time/],
            [`until=${encodeURIComponent(time)}`, '?until', /must be an RFC 3339 time/],
          ] as const,
      ),
    ] as const
  ).map(([query, at, says]): BadRequest => ({ is: query, on: `GET /revisions?${query}`, at, says })),
  ...NOT_LIMITS.map(
    (limit): BadRequest => ({
      is: `impact_limit ${JSON.stringify(limit)}`,
      on: `GET /revisions/1?impact_limit=${limit}`,
      at: '?impact_limit',
      says: /whole number from 0 to 10000/,
    }),
  ),
]

async function documentsOf(service: TestService): Promise<unknown> {
  const answers = await Promise.all(
    [...service.types.all.map(({ name }) => `/${name}`), '/revisions', POLL].map((url) =>
      service.call('GET', url),
    ),
  )
  return answers.map(({ text }) => text)
}

function pathsOf({ body }: Answer): string[] {
  return (body.details ?? []).map(({ path }: { path: string }) => path)
}

function assertRefused(answer: Answer, bad: BadRequest): void {
  const { status = 400, error = 'validation_error', at, says = /./ } = bad
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.error, error)
  assert.match(answer.body.message, says)
  if (at === undefined) return
  const found = pathsOf(answer).some((path) => (typeof at === 'string' ? path === at : at.test(path)))
  assert.ok(found, `no detail is at ${at}: ${answer.text}`)
  for (const { message } of answer.body.details) assert.ok(message.length > 5, answer.text)
}

for (const [group, requests] of Object.entries({
  'around operations': envelopes,
  'the shape of operations': shapes,
  'the targets of operations': targets,
  'what operations hold': contents,
  'operations that contradict each other': contradictions,
  'a rollback': rollbacks,
  'a revert': reverts,
  'parameters of writes': writeParameters,
  'parameters of reads': reads,
})) {
  describe(`${group}: what is bad is refused, named, and changes nothing`, async () => {
    const service = await startService({ types })
    const before = await documentsOf(service)
    for (const bad of requests) {
      const { is, on, status, error, at, says, ...call } = bad
      test(`${on.slice(0, 100)}: ${is.slice(0, 100)}`, async () => {
        const [method = '', url = ''] = on.split(' ')
        assertRefused(await service.call(method, url, call), bad)
        assert.equal(service.engine.state.revision, 1)
      })
    }
    test('and everything is as it was', async () => {
      assert.deepEqual(await documentsOf(service), before)
      assert.deepEqual(Object.keys(Object.prototype), [])
    })
  })
}

test('what is wrong with several operations is told at once', async () => {
  const service = await startService({ types })
  const operations = [
    { op: 'create', type: 'nope', document: {} },
    fine,
    { op: 'burn' },
    { op: 'delete', type: 'clusters', selector: 'region in' },
    { op: 'assign', type: 'clusters', ref: {}, clusters: ['one'] },
    { op: 'patch', type: 'namespaces', selector: 'id', patch: {} },
    { op: 'delete', type: 'clusters', id: 'one', clusters: ['two'] },
    { op: 'create', colour: 'red' },
    {},
  ]
  const answer = await service.call('POST', '/batch', { body: { operations } })
  assert.equal(answer.status, 400)
  assert.deepEqual(pathsOf(answer).toSorted(), [
    '/operations/0/type',
    '/operations/2/op',
    '/operations/3/selector',
    '/operations/4/ref/id',
    '/operations/4/type',
    '/operations/5/selector',
    '/operations/6',
    '/operations/7/colour',
    '/operations/7/document',
    '/operations/7/type',
    '/operations/8/op',
  ])
  assert.match(answer.body.message, /and 10 more/)
  assert.equal(service.engine.state.revision, 1)
})

test('all that is wrong with one document of a batch is told at once', async () => {
  const service = await startService({ types })
  const operation = cluster('Bad Name', { environment: 'moon', colour: 'red', node_count: -1 })
  const answer = await service.call('POST', '/batch', { body: { operations: [fine, operation] } })
  assert.deepEqual(
    pathsOf(answer).toSorted(),
    ['id', 'cluster_dns', 'environment', 'colour', 'node_count']
      .map((f) => `/operations/1/document/${f}`)
      .toSorted(),
  )
})

test('references that lead nowhere are told of all operations at once', async () => {
  const service = await startService({ types })
  const operations = ['nobody', 'team-b', 'nowhere'].map((id) => ({
    op: 'assign',
    type: 'namespaces',
    ref: { id },
    clusters: ['two'],
  }))
  const answer = await service.call('POST', '/batch', { body: { operations } })
  assert.equal(answer.status, 400)
  const messages = answer.body.details.map(({ message }: { message: string }) => message).join('\n')
  assert.match(messages, /"nobody"/)
  assert.match(messages, /"nowhere"/)
})

test('of very many problems the first are told, and that there are more', async () => {
  const service = await startService({ types })
  const operations = new Array(1000).fill({ op: 'burn' })
  const answer = await service.call('POST', '/batch', { body: { operations } })
  assert.equal(answer.status, 400)
  assert.equal(answer.body.details.length, 50)
  assert.match(answer.body.message, /and at least 100 more/)
  assert.ok(answer.bytes.length < 20_000)
})

test('all bad parameters of a write are told at once', async () => {
  const service = await startService({ types })
  const url = '/batch?plan=x&confirm=all&impact_limit=-1'
  const answer = await service.call('POST', url, { body: { operations: [fine] } })
  assert.deepEqual(pathsOf(answer).toSorted(), ['?confirm', '?impact_limit', '?plan'])
})

test('all bad parts of a rollback are told at once', async () => {
  const service = await startService({ types })
  const body = { to_time: '2026-13-45T00:00:00Z', types: ['clusters', 'nope'], selector: '=' }
  const answer = await service.call('POST', '/rollback', { body })
  assert.deepEqual(pathsOf(answer).toSorted(), ['/selector', '/to_time', '/types', '/types/1'])
})

test('a key that was refused as reserved has changed no object', async () => {
  const service = await startService({ types })
  const raw =
    '{"operations":[{"op":"patch","type":"clusters","id":"one","patch":{"__proto__":{"polluted":"yes"}}}]}'
  assert.equal((await service.call('POST', '/batch', { raw })).status, 400)
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
  assert.ok(!(await service.call('GET', '/clusters/one')).text.includes('polluted'))
})

test('what an operation may not have beside its target is refused before anything is done', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  const refused = async (operation: Json, path: string, status = 400) => {
    const answer = await service.call('POST', '/batch', { body: { operations: [operation] } })
    assert.equal(answer.status, status, answer.text)
    assert.equal(answer.body.details[0].path, path)
    assert.equal(service.engine.state.revision, 1)
  }
  await refused(
    { op: 'delete', type: 'clusters', selector: 'id', if_revision: 1 },
    '/operations/0/if_revision',
  )
  await refused(
    { op: 'delete', type: 'clusters', clusters: ['one'], if_revision: 1 },
    '/operations/0/if_revision',
  )
  await refused({ op: 'delete', type: 'clusters', id: 'one', cascade: true }, '/operations/0/cascade')
  await refused({ op: 'delete', type: 'namespaces', id: 'team-b', purge: true }, '/operations/0/purge')
  const unknown = { op: 'unassign', type: 'namespaces', id: 'team-a', clusters: ['one', 'nobody'] }
  await refused(unknown, '/operations/0/clusters/1', 404)
})

test('the blame goes to the operation that did it', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  const patch = { op: 'patch', type: 'clusters', id: 'one', patch: { node_count: 3 } }
  const inUse = await service.call('POST', '/batch', {
    body: { operations: [patch, { op: 'delete', type: 'namespaces', id: 'team-a' }] },
  })
  assert.deepEqual([inUse.status, inUse.body.error], [409, 'conflict'])
  const assign = { op: 'assign', type: 'namespaces', ref: { id: 'nobody' }, clusters: ['one'] }
  const unknown = await service.call('POST', '/batch', { body: { operations: [assign, patch] } })
  assert.equal(unknown.body.details[0].path, '/operations/0/ref/id')
  const several = await service.call('POST', '/batch', {
    body: { operations: ['x', 'y'].map((id) => ({ op: 'create', type: 'clusters', document: { id } })) },
  })
  const paths: string[] = several.body.details.map(({ path }: { path: string }) => path)
  assert.ok(
    paths.some((path) => path.startsWith('/operations/0/')) &&
      paths.some((path) => path.startsWith('/operations/1/')),
  )
})

test('a day that is not on the calendar, or a time out of all bounds, is no time', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  for (const time of [
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-00T00:00:00Z',
    '2026-01-01T00:00:00+24:00',
    '9999-12-31T23:59:59-23:59',
  ]) {
    for (const parameter of ['/clusters?at', '/revisions?since', '/revisions?until']) {
      const answer = await service.call('GET', `${parameter}=${encodeURIComponent(time)}`)
      assert.equal(answer.status, 400, `${parameter}=${time}`)
    }
    const rollback = await service.call('POST', '/rollback', { body: { to_time: time } })
    assert.equal(rollback.status, 400, time)
    assert.equal(rollback.body.details[0].path, '/to_time')
  }
  assert.equal(service.engine.state.revision, 1)
})

test('a body where none is taken is refused, so that what it says does not seem to count', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  for (const [method, url] of [
    ['DELETE', '/clusters/one'],
    ['DELETE', '/namespaces/team-b'],
    ['DELETE', '/clusters/one/namespaces/team-a'],
    ['DELETE', '/clusters/one/patches/a'],
    ['POST', '/clusters/one/restore'],
  ] as const) {
    const answer = await service.call(method, url, { body: { dry_run: true } })
    assert.equal(answer.status, 400, `${method} ${url}`)
  }
  assert.equal(service.engine.state.revision, 1)
  assert.equal((await service.call('DELETE', '/namespaces/team-b', { body: {} })).status, 200)
})
