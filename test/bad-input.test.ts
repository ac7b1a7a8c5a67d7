import assert from 'node:assert/strict'
import { type AddressInfo, connect } from 'node:net'
import { describe, test } from 'node:test'
import type { Json, JsonObject } from '../src/base/json.ts'
import { type Call, smallFleet, startService, type TestService, WRITE_TOKEN } from './service.ts'

const JSON_PATCH = { 'content-type': 'application/json-patch+json' }
const MAX_BODY = 4 * 1024 * 1024
const MAX_ANSWER = 900 * 1024
const MAX_INPUTS = 10_000
const COMPONENTS = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'

interface BadInput extends Call {
  readonly is: string
  readonly on: `${string} /${string}`
  readonly status: number
  readonly error: string
  /** The path of one of the details. */
  readonly at?: string
  /** What the message says. */
  readonly says?: RegExp
  readonly allow?: string
}

const cluster = { id: 'new', cluster_name: 'new', cluster_dns: 'new.k8s.example.com', environment: 'dev' }
const component = {
  id: 'new',
  component_path: 'core/new',
  component_version: '1.0.0',
  oci_url: 'oci://registry.example.com/components',
  oci_tag: 'v1.0.0',
}
const namespace = { id: 'new' }
const rolebinding = { id: 'new', role: 'view', subjects: [{ kind: 'User', name: 'ann' }] }
const DOCUMENTS: Record<string, JsonObject> = {
  clusters: cluster,
  platform_components: component,
  namespaces: namespace,
  rolebindings: rolebinding,
}

function invalid(is: string, on: BadInput['on'], more: Call & { at?: string; says?: RegExp }): BadInput {
  return { is, on, status: 400, error: 'validation_error', ...more }
}

function without(document: JsonObject, field: string): JsonObject {
  return Object.fromEntries(Object.entries(document).filter(([key]) => key !== field))
}

function ofEveryType(make: (type: string, document: JsonObject) => BadInput[]): BadInput[] {
  return Object.entries(DOCUMENTS).flatMap(([type, document]) => make(type, document))
}

const malformed: BadInput[] = [
  ...['{"id":', 'not json', '{"id":"x"} trailing', "{'id':'x'}", '{"id":"x",}', '[', '"\\u12"'].map((raw) =>
    invalid(`malformed JSON ${raw}`, 'POST /namespaces', { raw, says: /JSON/ }),
  ),
  invalid('bytes that are not UTF-8', 'POST /namespaces', {
    raw: Buffer.from([0x7b, 0x22, 0xff, 0xfe, 0x22, 0x3a, 0x31, 0x7d]),
    says: /UTF-8/,
  }),
  invalid('malformed JSON', 'PUT /clusters/one', { raw: '{', says: /JSON/ }),
  invalid('malformed JSON', 'PATCH /clusters/one', { raw: '{', says: /JSON/ }),
  invalid('malformed JSON patch', 'PATCH /clusters/one', { raw: '[{', headers: JSON_PATCH, says: /JSON/ }),
  invalid('malformed JSON', 'PUT /clusters/one/platform_components/c', { raw: '{', says: /JSON/ }),
  invalid('malformed JSON', 'PUT /clusters/one/patches/a', { raw: '{', says: /JSON/ }),
]

function wrongType(on: BadInput['on'], type: string): BadInput {
  return {
    is: `content type "${type}"`,
    on,
    raw: Buffer.from('{"id":"new"}'),
    headers: { 'content-type': type },
    status: 415,
    error: 'unsupported_media_type',
    says: /application\/json/,
  }
}

const contentTypes: BadInput[] = [
  ...[
    'text/plain',
    'application/xml',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/jsonp',
    'application/json-patch+json',
    'nonsense',
    '',
  ].map((type) => wrongType('POST /namespaces', type)),
  wrongType('PUT /namespaces/team-a', 'application/merge-patch+json'),
  wrongType('PATCH /namespaces/team-a', 'text/yaml'),
  wrongType('PUT /clusters/one/platform_components/c', 'text/plain'),
  wrongType('PATCH /clusters/one/patches/a', 'text/plain'),
]

const unknownFields: BadInput[] = [
  ...ofEveryType((type, document) => [
    invalid('an unknown field', `POST /${type}`, { body: { ...document, colour: 'red' }, at: '/colour' }),
  ]),
  invalid('an unknown field', 'PUT /namespaces/team-a', { body: { lables: {} }, at: '/lables' }),
  invalid('an unknown field', 'PATCH /namespaces/team-a', { body: { lables: {} }, at: '/lables' }),
  invalid('an unknown field', 'PATCH /namespaces/team-a', {
    body: [{ op: 'add', path: '/lables', value: {} }],
    headers: JSON_PATCH,
    at: '/lables',
  }),
  invalid('an unknown field of a reference', 'POST /clusters', {
    body: { ...cluster, platform_components: [{ id: 'a', replicas: 2 }] },
    at: '/platform_components/0/replicas',
  }),
  invalid('a field that a reference may not override', 'PUT /clusters/one/platform_components/c', {
    body: { oci_url: 'oci://elsewhere' },
    at: '/oci_url',
  }),
  invalid('an unknown field of a reference', 'PATCH /clusters/one/platform_components/a', {
    body: { oci_tags: 'v1' },
    at: '/oci_tags',
  }),
  invalid('an unknown field of a subject', 'POST /rolebindings', {
    body: { ...rolebinding, subjects: [{ kind: 'User', name: 'ann', email: 'x' }] },
    at: '/subjects/0/email',
  }),
]

const REQUIRED: Record<string, string[]> = {
  clusters: ['id', 'cluster_name', 'cluster_dns', 'environment'],
  platform_components: ['id', 'component_path', 'component_version', 'oci_url', 'oci_tag'],
  namespaces: ['id'],
  rolebindings: ['id', 'role', 'subjects'],
}

const missingFields: BadInput[] = [
  ...ofEveryType((type, document) =>
    (REQUIRED[type] ?? []).map((field) =>
      invalid(`${field} is missing`, `POST /${type}`, { body: without(document, field), at: `/${field}` }),
    ),
  ),
  ...ofEveryType((type) => [invalid('no body at all', `POST /${type}`, { at: '', says: /missing/ })]),
  invalid('cluster_name is missing', 'PUT /clusters/one', {
    body: { cluster_dns: 'one.k8s.example.com', environment: 'dev' },
    at: '/cluster_name',
  }),
  invalid('a required field set to null', 'PATCH /clusters/one', {
    body: { environment: null },
    at: '/environment',
  }),
  invalid('a required field removed', 'PATCH /clusters/one', {
    body: [{ op: 'remove', path: '/environment' }],
    headers: JSON_PATCH,
    at: '/environment',
  }),
  invalid('a reference without an id', 'PATCH /clusters/one', {
    body: { namespaces: [{}] },
    at: '/namespaces/0/id',
  }),
  invalid('a subject without a name', 'POST /rolebindings', {
    body: { ...rolebinding, subjects: [{ kind: 'User' }] },
    at: '/subjects/0/name',
  }),
]

const MISTYPED: [string, JsonObject, string][] = [
  ['clusters', { cluster_name: 5 }, '/cluster_name'],
  ['clusters', { cluster_name: '' }, '/cluster_name'],
  ['clusters', { cluster_dns: ['x'] }, '/cluster_dns'],
  ['clusters', { labels: 'region=eu' }, '/labels'],
  ['clusters', { labels: { region: 5 } }, '/labels/region'],
  ['clusters', { labels: { region: null } }, '/labels/region'],
  ['clusters', { labels: { 'not a key': 'x' } }, '/labels/not a key'],
  ['clusters', { labels: { region: 'not a value!' } }, '/labels/region'],
  ['clusters', { deletion_protection: 'yes' }, '/deletion_protection'],
  ['clusters', { node_count: 1.5 }, '/node_count'],
  ['clusters', { node_count: -1 }, '/node_count'],
  ['clusters', { node_count: '3' }, '/node_count'],
  ['clusters', { namespaces: {} }, '/namespaces'],
  ['clusters', { namespaces: ['team-a'] }, '/namespaces/0'],
  ['clusters', { namespaces: [null] }, '/namespaces/0'],
  ['clusters', { namespaces: [{ id: 5 }] }, '/namespaces/0/id'],
  ['clusters', { platform_components: [{ id: 'a', enabled: 'true' }] }, '/platform_components/0/enabled'],
  ['clusters', { platform_components: [{ id: 'a', oci_tag: 2 }] }, '/platform_components/0/oci_tag'],
  ['clusters', { platform_components: [{ id: 'a' }], patches: { a: 'x' } }, '/patches/a'],
  ['clusters', { platform_components: [{ id: 'a' }], patches: { a: { n: 2 } } }, '/patches/a/n'],
  ['platform_components', { cluster_env_enabled: 1 }, '/cluster_env_enabled'],
  ['platform_components', { depends_on: 'a' }, '/depends_on'],
  ['platform_components', { depends_on: [1] }, '/depends_on/0'],
  ['platform_components', { oci_tag: '' }, '/oci_tag'],
  ['namespaces', { annotations: [] }, '/annotations'],
  ['namespaces', { annotations: { a: true } }, '/annotations/a'],
  ['rolebindings', { role: {} }, '/role'],
  ['rolebindings', { subjects: 'ann' }, '/subjects'],
  ['rolebindings', { subjects: [{ kind: 'Robot', name: 'r2' }] }, '/subjects/0/kind'],
]

/** Operations that RFC 6902 does not allow, or that have no place to work on. */
const BAD_STEPS: JsonObject[] = [
  { path: '/labels/x', value: '1' },
  { op: '_get', path: '/id' },
  { op: 'add', path: '/labels/x' },
  { op: 'replace', path: '/environment' },
  { op: 'test', path: '/node_count' },
  { op: 'copy', path: '/labels/x' },
  { op: 'move', path: '/labels/x' },
  { op: 'move', from: 5, path: '/labels/x' },
  { op: 'move', from: 'labels', path: '/labels/x' },
  { op: 'move', from: '/labels/nope', path: '/labels/x' },
  { op: 'move', from: '/labels', path: '/labels/x' },
  { op: 'add', path: 'labels/x', value: '1' },
  { op: 'add', path: '/nope/x', value: '1' },
  { op: 'add', path: '/environment/x', value: '1' },
  { op: 'add', path: '/namespaces/99', value: { id: 'team-b' } },
  { op: 'add', path: '/namespaces/x', value: { id: 'team-b' } },
  { op: 'add', path: '/namespaces/-1', value: { id: 'team-b' } },
  { op: 'remove', path: '/namespaces/99' },
  { op: 'remove', path: '' },
  { op: 'replace', path: '', value: null },
]

const notObjects: Json[] = [null, [], 'text', 7, true]

const mistypedFields: BadInput[] = [
  ...MISTYPED.map(([type, fields, at]) =>
    invalid(JSON.stringify(fields), `POST /${type}`, { body: { ...DOCUMENTS[type], ...fields }, at }),
  ),
  ...(
    [
      'POST /clusters',
      'PUT /clusters/one',
      'PATCH /clusters/one',
      'PUT /clusters/one/platform_components/b',
      'PATCH /clusters/one/platform_components/b',
      'PUT /clusters/one/patches/a',
      'PATCH /clusters/one/patches/a',
    ] as const
  ).flatMap((on) =>
    notObjects.map((body) =>
      invalid(`${JSON.stringify(body)} for an object`, on, { body, says: /must be an object|is required/ }),
    ),
  ),
  ...[{}, null, 'text', [null], ['x'], [{}], [{ op: 'add' }]].map((body) =>
    invalid(`${JSON.stringify(body)} for a list of operations`, 'PATCH /clusters/one', {
      body,
      headers: JSON_PATCH,
      says: /operations/,
    }),
  ),
  invalid('an unknown operation', 'PATCH /clusters/one', {
    body: [{ op: 'frobnicate', path: '/environment' }],
    headers: JSON_PATCH,
    at: '/0',
  }),
  ...BAD_STEPS.map((step) =>
    invalid(`the operation ${JSON.stringify(step)}`, 'PATCH /clusters/one', {
      body: [{ op: 'replace', path: '/environment', value: 'qa' }, step],
      headers: JSON_PATCH,
      says: /\S/,
    }),
  ),
  invalid('an operation on nothing', 'PATCH /clusters/one', {
    body: [
      { op: 'replace', path: '/environment', value: 'qa' },
      { op: 'remove', path: '/labels/nope' },
    ],
    headers: JSON_PATCH,
    at: '/1',
  }),
  invalid('a value that is not a string', 'PUT /clusters/one/patches/a', { body: { n: 2 }, at: '/n' }),
  invalid('a value that is not a string', 'PATCH /clusters/one/patches/a', {
    body: { n: { deep: 'x' } },
    at: '/n',
  }),
  invalid('a mistyped field of a reference', 'PUT /clusters/one/platform_components/a', {
    body: { enabled: 'no' },
    at: '/enabled',
  }),
  invalid('a mistyped field of a reference', 'PATCH /clusters/one/platform_components/a', {
    body: { oci_tag: 5 },
    at: '/oci_tag',
  }),
]

const BAD_NAMES = ['', 'Upper', 'under_score', '-a', 'a-', 'a b', 'a/b', '../a', 'ä', 'a\n', '.', 'x..y']

const ids: BadInput[] = [
  ...ofEveryType((type, document) =>
    BAD_NAMES.map((id) =>
      invalid(`id ${JSON.stringify(id)}`, `POST /${type}`, {
        body: { ...document, id },
        at: '/id',
        says: /RFC 1123/,
      }),
    ),
  ),
  ...['platform_components', 'namespaces'].flatMap((type) =>
    ['a.b', 'x'.repeat(64)].map((id) =>
      invalid(`id ${id}`, `POST /${type}`, {
        body: { ...DOCUMENTS[type], id },
        at: '/id',
        says: /RFC 1123 label/,
      }),
    ),
  ),
  ...['clusters', 'rolebindings'].map((type) =>
    invalid('an id of 254 characters', `POST /${type}`, {
      body: { ...DOCUMENTS[type], id: `${'x'.repeat(63)}.`.repeat(4).slice(0, 254).replace(/\.$/, 'x') },
      at: '/id',
      says: /RFC 1123 subdomain/,
    }),
  ),
  invalid('id null', 'POST /namespaces', { body: { id: null }, at: '/id' }),
  invalid('id 5', 'POST /namespaces', { body: { id: 5 }, at: '/id' }),
  invalid('a bad id in the path', 'PUT /namespaces/Upper', {
    body: {},
    headers: { 'if-none-match': '*' },
    at: '/id',
    says: /RFC 1123/,
  }),
  ...ofEveryType((type, document) => [
    invalid('an id that differs from the path', `PUT /${type}/${existing(type)}`, {
      body: { ...document, id: 'other' },
      at: '/id',
      says: new RegExp(existing(type)),
    }),
    invalid('an id that differs from the path', `PATCH /${type}/${existing(type)}`, {
      body: { id: 'other' },
      at: '/id',
    }),
    invalid('an id that differs from the path', `PATCH /${type}/${existing(type)}`, {
      body: [{ op: 'replace', path: '/id', value: 'other' }],
      headers: JSON_PATCH,
      at: '/id',
    }),
  ]),
  invalid('an id that differs from the path', 'PUT /clusters/one/platform_components/c', {
    body: { id: 'a' },
    at: '/id',
  }),
  invalid('an id that differs from the path', 'PATCH /clusters/one/platform_components/a', {
    body: { id: 'b' },
    at: '/id',
  }),
]

function existing(type: string): string {
  const ids: Record<string, string> = { clusters: 'one', platform_components: 'a', namespaces: 'team-a' }
  return ids[type] ?? 'admins'
}

const BAD_DNS = [
  '',
  'under_score.example.com',
  '-a.example.com',
  'a-.example.com',
  'a..example.com',
  '.example.com',
  'a b.example.com',
  'ä.example.com',
  'https://a.example.com',
  'a.example.com/x',
  'a.example.com:6443',
  `${'x'.repeat(64)}.example.com`,
  `${'x.'.repeat(127)}xx`,
  'a.example.com\n',
]

const dnsNames: BadInput[] = [
  ...BAD_DNS.map((cluster_dns) =>
    invalid(`cluster_dns ${JSON.stringify(cluster_dns).slice(0, 40)}`, 'POST /clusters', {
      body: { ...cluster, cluster_dns },
      at: '/cluster_dns',
      says: /DNS name/,
    }),
  ),
  ...['one.k8s.example.com', 'ONE.K8s.Example.com'].flatMap((cluster_dns): BadInput[] => [
    {
      is: `the DNS name ${cluster_dns} of another cluster`,
      on: 'POST /clusters',
      body: { ...cluster, cluster_dns },
      status: 409,
      error: 'conflict',
      at: '/cluster_dns',
      says: /"one"/,
    },
    {
      is: `the DNS name ${cluster_dns} of another cluster`,
      on: 'PATCH /clusters/two',
      body: { cluster_dns },
      status: 409,
      error: 'conflict',
      at: '/cluster_dns',
      says: /"one"/,
    },
  ]),
]

const environments: BadInput[] = [
  ...['production', 'DEV', '', 5, null].map((environment) =>
    invalid(`environment ${JSON.stringify(environment)}`, 'POST /clusters', {
      body: { ...cluster, environment },
      at: '/environment',
    }),
  ),
  invalid('environment "moon"', 'PATCH /clusters/one', {
    body: { environment: 'moon' },
    at: '/environment',
    says: /dev, qa, uat, prod/,
  }),
]

const LISTS: [string, string][] = [
  ['platform_components', 'a'],
  ['namespaces', 'team-a'],
  ['rolebindings', 'admins'],
]

const references: BadInput[] = [
  ...LISTS.flatMap(([list, id]) => [
    invalid(`an unknown reference in ${list}`, 'POST /clusters', {
      body: { ...cluster, [list]: [{ id }, { id: 'nope' }] },
      at: `/${list}/1/id`,
      says: /"nope"/,
    }),
    invalid(`an unknown reference in ${list}`, 'PATCH /clusters/two', {
      body: { [list]: [{ id: 'nope' }] },
      at: `/${list}/0/id`,
    }),
    invalid('an unknown reference', `PUT /clusters/two/${list}/nope`, {
      body: { id: 'nope' },
      says: /"nope"/,
      at: '/id',
    }),
    invalid(`a duplicate reference in ${list}`, 'POST /clusters', {
      body: { ...cluster, [list]: [{ id }, { id }] },
      at: `/${list}/1/id`,
      says: /duplicate/,
    }),
    invalid(`a duplicate reference in ${list}`, 'PATCH /clusters/one', {
      body: [{ op: 'add', path: `/${list}/-`, value: { id } }],
      headers: JSON_PATCH,
      says: /duplicate/,
    }),
  ]),
  invalid('patches for an unassigned component', 'POST /clusters', {
    body: { ...cluster, patches: { a: { x: '1' } } },
    at: '/patches/a',
  }),
  invalid('patches for an unassigned component', 'PATCH /clusters/one', {
    body: { patches: { c: { x: '1' } } },
    at: '/patches/c',
  }),
  invalid('patches for no component', 'PATCH /clusters/one', {
    body: { patches: { 'a/b': { x: '1' } } },
    at: '/patches/a~1b',
  }),
  invalid('a component taken away while its patches stay', 'PATCH /clusters/one', {
    body: { platform_components: [{ id: 'b' }] },
    at: '/patches/a',
  }),
  invalid('an unknown depends_on', 'POST /platform_components', {
    body: { ...component, depends_on: ['a', 'nope'] },
    at: '/depends_on/1',
    says: /"nope"/,
  }),
  invalid('an unknown depends_on', 'PATCH /platform_components/a', {
    body: { depends_on: ['nope'] },
    at: '/depends_on/0',
  }),
  invalid('a depends_on named twice', 'PATCH /platform_components/c', {
    body: { depends_on: ['a', 'a'] },
    at: '/depends_on/1',
  }),
  invalid('a cyclic depends_on', 'PATCH /platform_components/a', {
    body: { depends_on: ['c'] },
    at: '/depends_on/0',
    says: /cycle.*a.*c.*b.*a/,
  }),
  invalid('a depends_on of two that name each other', 'PATCH /platform_components/a', {
    body: { depends_on: ['b'] },
    at: '/depends_on/0',
    says: /cycle/,
  }),
  invalid('a component that depends on itself', 'PATCH /platform_components/a', {
    body: { depends_on: ['a'] },
    at: '/depends_on/0',
    says: /cycle/,
  }),
  invalid('a new component that depends on itself', 'POST /platform_components', {
    body: { ...component, depends_on: ['new'] },
    at: '/depends_on/0',
    says: /cycle/,
  }),
]

const NUMBERS = ['-1', 'abc', '1.5', '1e3', '', '%201', '99999999999999999999', '0x10']

const LIST_URLS = [
  '/clusters',
  '/platform_components',
  '/namespaces',
  '/rolebindings',
  '/api/v2/flux/clusters',
]

const queries: BadInput[] = [
  ...LIST_URLS.flatMap((url) =>
    ['limit', 'offset'].flatMap((name) =>
      NUMBERS.map((value) =>
        invalid(`${name}=${value}`, `GET ${url}?${name}=${value}` as BadInput['on'], {
          says: new RegExp(name),
        }),
      ),
    ),
  ),
  ...ofEveryType((type) =>
    ['limit', 'offset'].map((name) =>
      invalid(`${name} given twice`, `GET /${type}?${name}=1&${name}=2`, { says: new RegExp(name) }),
    ),
  ),
  ...ofEveryType((type) =>
    ['enviroment=dev', 'id=one', 'labels=x', '__proto__=x', 'constructor=x'].map((query) =>
      invalid(`the unknown filter ${query}`, `GET /${type}?${query}`, {
        says: new RegExp(query.split('=')[0] as string),
      }),
    ),
  ),
  invalid('a filter with an impossible value', 'GET /clusters?environment=moon', { says: /environment/ }),
  invalid('a filter given twice', 'GET /clusters?environment=dev&environment=qa', { says: /environment/ }),
  invalid('a filter with an impossible value', 'GET /api/v2/flux/clusters?environment=moon', {
    says: /environment/,
  }),
]

const encodings: BadInput[] = [
  ...['%zz', '%', '%E0%A4%A', '%ff', 'a%2'].flatMap((id) => [
    invalid(`bad percent-encoding ${id}`, `GET /clusters/${id}`, { says: /\S/ }),
    invalid(`bad percent-encoding ${id}`, `GET /api/v2/flux/clusters/${id}/namespaces`, { says: /\S/ }),
    invalid(`bad percent-encoding ${id}`, `DELETE /namespaces/${id}`, { says: /\S/ }),
  ]),
  invalid('bad percent-encoding in a filter', 'GET /clusters?cluster_name=%zz', {
    says: /cluster_name|%zz|encod/,
  }),
]

function unknownRoute(on: BadInput['on'], more: Call & { is?: string } = {}): BadInput {
  const says = new RegExp(on.replaceAll('.', '\\.'))
  return { is: 'an unknown route', on, status: 404, error: 'not_found', says, ...more }
}

function wrongMethod(on: BadInput['on'], allow: string, more: Call & { is?: string } = {}): BadInput {
  const [method] = on.split(' ')
  const says = new RegExp(method as string)
  return { is: 'a wrong method', on, status: 405, error: 'method_not_allowed', says, allow, ...more }
}

const routes: BadInput[] = [
  unknownRoute('GET /'),
  unknownRoute('GET /nope'),
  unknownRoute('GET /clusters/one/nope'),
  unknownRoute('GET /clusters/one/namespaces/team-a/nope'),
  unknownRoute('GET /api/v2/flux'),
  unknownRoute('GET /api/v2/flux/clusters/one.k8s.example.com'),
  unknownRoute('POST /nope', { body: {} }),
  unknownRoute('POST /nope', { is: 'an unknown route and malformed JSON', raw: '{' }),
  unknownRoute('POST /nope', {
    is: 'an unknown route and XML',
    raw: '<x/>',
    headers: { 'content-type': 'application/xml' },
  }),
  unknownRoute('DELETE /nope/one'),
  wrongMethod('PUT /clusters', 'GET, HEAD, POST', { body: {} }),
  wrongMethod('PATCH /namespaces', 'GET, HEAD, POST', { body: {} }),
  wrongMethod('DELETE /platform_components', 'GET, HEAD, POST'),
  wrongMethod('DELETE /rolebindings?cascade=true', 'GET, HEAD, POST'),
  wrongMethod('POST /clusters/one', 'DELETE, GET, HEAD, PATCH, PUT', { body: {} }),
  wrongMethod('POST /clusters/one', 'DELETE, GET, HEAD, PATCH, PUT', {
    is: 'a wrong method and malformed JSON',
    raw: '{',
  }),
  wrongMethod('OPTIONS /clusters/one', 'DELETE, GET, HEAD, PATCH, PUT'),
  wrongMethod('TRACE /clusters/one', 'DELETE, GET, HEAD, PATCH, PUT'),
  wrongMethod('GET /clusters/one/restore', 'POST'),
  wrongMethod('POST /clusters/one/platform_components/a', 'DELETE, GET, HEAD, PATCH, PUT', { body: {} }),
  wrongMethod('POST /clusters/one/patches/a', 'DELETE, GET, HEAD, PATCH, PUT', { body: {} }),
  wrongMethod('PUT /clusters/one/inputs/namespaces', 'GET, HEAD', { body: {} }),
  wrongMethod('DELETE /clusters/one/history', 'GET, HEAD'),
  wrongMethod('POST /revisions', 'GET, HEAD', { body: {} }),
  wrongMethod('DELETE /revisions/1', 'GET, HEAD'),
  wrongMethod('POST /api/v2/flux/clusters', 'GET, HEAD', { body: {} }),
  wrongMethod('DELETE /api/v2/flux/clusters/one.k8s.example.com/namespaces', 'GET, HEAD'),
  wrongMethod('POST /health', 'GET, HEAD'),
  wrongMethod('DELETE /metrics', 'GET, HEAD'),
  wrongMethod('PUT /openapi.json', 'GET, HEAD', { body: {} }),
]

const RESERVED = ['__proto__', 'constructor', 'prototype']

const reservedKeys: BadInput[] = [
  ...RESERVED.flatMap((key) => [
    invalid(`the key ${key}`, 'POST /namespaces', {
      raw: `{"id":"new","${key}":{"polluted":"yes"}}`,
      at: `/${key}`,
    }),
    invalid(`the key ${key}`, 'PUT /namespaces/team-a', {
      raw: `{"${key}":{"polluted":"yes"}}`,
      at: `/${key}`,
    }),
    invalid(`the key ${key}`, 'PATCH /namespaces/team-a', {
      raw: `{"${key}":{"polluted":"yes"}}`,
      at: `/${key}`,
    }),
    invalid(`the key ${key} among labels`, 'PATCH /namespaces/team-a', {
      raw: `{"labels":{"${key}":"x"}}`,
      at: `/labels/${key}`,
    }),
    invalid(`the key ${key} among patches`, 'PATCH /clusters/one', {
      raw: `{"patches":{"${key}":{"polluted":"yes"}}}`,
      at: `/patches/${key}`,
    }),
    invalid(`the key ${key} of a reference`, 'PUT /clusters/one/platform_components/c', {
      raw: `{"${key}":{"enabled":false}}`,
      at: `/${key}`,
    }),
    invalid(`the key ${key} among values`, 'PATCH /clusters/one/patches/a', {
      raw: `{"${key}":"x"}`,
      at: `/${key}`,
    }),
    invalid(`a JSON patch below ${key}`, 'PATCH /clusters/one', {
      body: [{ op: 'add', path: `/${key}/polluted`, value: 'yes' }],
      headers: JSON_PATCH,
      says: /\S/,
    }),
    invalid(`a JSON patch that adds ${key}`, 'PATCH /clusters/one', {
      body: [{ op: 'add', path: `/labels/${key}`, value: 'yes' }],
      headers: JSON_PATCH,
      says: /\S/,
    }),
    invalid(`a reference to ${key}`, 'PATCH /clusters/two', {
      body: { namespaces: [{ id: key }] },
      at: '/namespaces/0/id',
    }),
    invalid(`a depends_on of ${key}`, 'PATCH /platform_components/a', {
      body: { depends_on: [key] },
      at: '/depends_on/0',
    }),
  ]),
  invalid('a JSON patch through constructor.prototype', 'PATCH /clusters/one', {
    body: [{ op: 'add', path: '/labels/constructor/prototype/polluted', value: 'yes' }],
    headers: JSON_PATCH,
    says: /\S/,
  }),
  invalid('a JSON patch that copies from __proto__', 'PATCH /clusters/one', {
    body: [{ op: 'copy', from: '/__proto__', path: '/labels' }],
    headers: JSON_PATCH,
    says: /\S/,
  }),
  ...['toString', 'hasOwnProperty', 'valueOf'].flatMap((key) => [
    invalid(`the key ${key}`, 'PATCH /namespaces/team-a', { body: { [key]: 'x' }, at: `/${key}` }),
    invalid(`patches for ${key}`, 'PATCH /clusters/one', {
      body: { patches: { [key]: { x: '1' } } },
      at: `/patches/${key}`,
    }),
  ]),
  ...[...RESERVED, 'toString'].flatMap((id): BadInput[] =>
    (['GET', 'DELETE'] as const).flatMap((method) =>
      ['/clusters/', '/namespaces/', '/clusters/one/namespaces/', '/clusters/one/patches/'].map((url) => ({
        is: `the id ${id}`,
        on: `${method} ${url}${id}` as BadInput['on'],
        status: 404,
        error: 'not_found',
        says: new RegExp(id),
      })),
    ),
  ),
]

const BAD_TEXT: [string, string][] = [
  ['NUL', '\\u0000'],
  ['a lone high surrogate', '\\ud800'],
  ['a lone low surrogate', '\\udc00x'],
]

const texts: BadInput[] = [
  ...BAD_TEXT.flatMap(([name, text]) => [
    invalid(`${name} in a string`, 'PATCH /clusters/one', {
      raw: `{"cluster_name":"a${text}"}`,
      at: '/cluster_name',
    }),
    invalid(`${name} in an id`, 'POST /namespaces', { raw: `{"id":"a${text}"}`, at: '/id' }),
    invalid(`${name} in an annotation`, 'PUT /namespaces/team-a', {
      raw: `{"annotations":{"note":"${text}"}}`,
      at: '/annotations/note',
    }),
    invalid(`${name} in a list`, 'PATCH /platform_components/a', {
      raw: `{"depends_on":["${text}"]}`,
      at: '/depends_on/0',
    }),
    invalid(`${name} in a key`, 'PUT /clusters/one/patches/a', { raw: `{"a${text}":"x"}`, says: /\S/ }),
    invalid(`${name} in a value`, 'PATCH /clusters/one/patches/a', { raw: `{"x":"${text}"}`, at: '/x' }),
    invalid(`${name} in an override`, 'PUT /clusters/one/platform_components/a', {
      raw: `{"oci_tag":"${text}"}`,
      at: '/oci_tag',
    }),
    invalid(`${name} in a JSON patch`, 'PATCH /clusters/one', {
      raw: `[{"op":"replace","path":"/cluster_name","value":"${text}"}]`,
      headers: JSON_PATCH,
      at: '/0/value',
    }),
  ]),
  { is: 'NUL in a path', on: 'GET /clusters/%00', status: 404, error: 'not_found', says: /cluster/ },
]

const TABLE: Record<string, BadInput[]> = {
  'malformed JSON': malformed,
  'a wrong content type': contentTypes,
  'an unknown field': unknownFields,
  'a missing field': missingFields,
  'a mistyped field': mistypedFields,
  'an id that is empty, invalid or not that of the path': ids,
  'an invalid or duplicate cluster_dns': dnsNames,
  'a wrong environment': environments,
  'references that are unknown, duplicate or cyclic': references,
  'bad or unknown query parameters': queries,
  'bad percent-encoding': encodings,
  'an unknown route or a wrong method': routes,
  '__proto__ and friends': reservedKeys,
  'NUL and lone surrogates': texts,
}

/** Everything that a reader can see of the state. */
async function everything(service: TestService): Promise<string> {
  const urls = [
    ...service.types.all.map(({ name }) => `/${name}`),
    ...service.types.delivered.map(({ delivery }) => `/clusters/one/inputs/${delivery.endpoint}`),
    '/revisions',
  ]
  const answers = await Promise.all(urls.map((url) => service.call('GET', url)))
  return answers.map(({ text }) => text).join('\n')
}

async function assertRefused(service: TestService, input: BadInput): Promise<void> {
  const { revision } = service.engine.state
  const [method, url] = input.on.split(/ (.*)/) as [string, string]
  const { status, headers, body, text } = await service.call(method, url, input)
  assertUnpolluted()
  assert.equal(status, input.status, text.slice(0, 500))
  assert.match(String(headers['content-type']), /^application\/json/)
  assert.equal(body.error, input.error)
  assert.equal(typeof body.message, 'string')
  assert.ok(input.at !== undefined || input.says !== undefined)
  if (input.says) assert.match(body.message, input.says)
  if (input.at !== undefined) {
    const paths = (body.details ?? []).map(({ path }: { path: string }) => path)
    assert.ok(
      paths.includes(input.at),
      `${input.at} is not one of ${paths.join(', ')} in ${text.slice(0, 500)}`,
    )
    assert.ok(body.details.every(({ message }: { message: string }) => message.length > 0))
  }
  if (input.allow) assert.equal(headers.allow, input.allow)
  assert.equal(service.engine.state.revision, revision)
}

/** Fails when a request has reached the prototype of all objects, and cleans up for the tests after it. */
function assertUnpolluted(): void {
  const polluted = Object.hasOwn(Object.prototype, 'polluted')
  Reflect.deleteProperty(Object.prototype, 'polluted')
  assert.equal(polluted, false, 'Object.prototype was written to')
}

for (const [group, inputs] of Object.entries(TABLE)) {
  describe(`refused with a clear error, changing nothing: ${group}`, () => {
    let shared: TestService | undefined
    for (const input of inputs) {
      test(`${input.is} on ${input.on}`, async () => {
        const service = shared ?? (await startService())
        shared = undefined
        const before = await everything(service)
        await assertRefused(service, input)
        assert.equal(await everything(service), before)
        shared = service // a service that took bad input is not used again
      })
    }
  })
}

test('all that is wrong with a document is told at once', async () => {
  const service = await startService()
  const body = { ...cluster, cluster_name: 5, environment: 'moon', colour: 'red', namespaces: [{ id: 7 }] }
  const answer = await service.call('POST', '/clusters', { body })
  assert.equal(answer.status, 400)
  const paths = answer.body.details.map(({ path }: { path: string }) => path)
  assert.deepEqual(paths.toSorted(), ['/cluster_name', '/colour', '/environment', '/namespaces/0/id'])
})

test('a body over 4 MiB is refused with a clear error and changes nothing', async () => {
  const service = await startService()
  const { port } = service.app.server.address() as AddressInfo
  for (const [method, path] of [
    ['POST', '/namespaces'],
    ['PATCH', '/clusters/one'],
    ['PUT', '/clusters/one/platform_components/c'],
    ['PUT', '/clusters/one/patches/a'],
  ] as const) {
    // The answer may come while the body is still being sent; fetch takes it even so.
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      headers: { authorization: `Bearer ${WRITE_TOKEN}`, 'content-type': 'application/json' },
      body: '{}'.padEnd(MAX_BODY + 1),
    })
    assert.equal(response.status, 413, path)
    const { error, message } = (await response.json()) as { error: string; message: string }
    assert.equal(error, 'payload_too_large')
    assert.match(message, /larger/)
  }
  assert.equal(service.engine.state.revision, 1)
})

test('a body of exactly 4 MiB is accepted', async () => {
  const service = await startService()
  const { status } = await service.call('POST', '/namespaces', { raw: '{"id":"new"}'.padEnd(MAX_BODY) })
  assert.equal(status, 201)
})

test('names at the limits of their rules are accepted', async () => {
  const service = await startService()
  const label = 'x'.repeat(63)
  const subdomain = `${label}.${label}.${label}.${'x'.repeat(61)}`
  assert.equal(subdomain.length, 253)
  for (const [type, id] of [
    ['namespaces', label],
    ['platform_components', '0-9'],
    ['rolebindings', subdomain],
    ['clusters', subdomain],
  ] as const) {
    const body = { ...DOCUMENTS[type], id, ...(type === 'clusters' && { cluster_dns: subdomain }) }
    assert.equal((await service.call('POST', `/${type}`, { body })).status, 201, type)
    assert.equal((await service.call('GET', `/${type}/${id}`)).status, 200, type)
  }
  const polled = await service.call('GET', `/api/v2/flux/clusters/${subdomain}./namespaces`)
  assert.equal(polled.status, 200)
})

test('JSON nested without end is refused', async () => {
  const service = await startService()
  for (const raw of ['['.repeat(200_000), `${'['.repeat(100_000)}${']'.repeat(100_000)}`]) {
    await assertRefused(service, invalid('deep JSON', 'POST /namespaces', { raw, says: /\S/ }))
  }
})

/** How many more bytes the answer to cluster one's components may have. */
async function room(service: TestService): Promise<number> {
  const { headers } = await service.call('GET', COMPONENTS)
  return MAX_ANSWER - Number(headers['content-length'])
}

test('an answer of 900 KiB is accepted and one byte more is refused, with the figures', async () => {
  const service = await startService()
  await service.call('PUT', '/clusters/one/patches/a', { body: { big: '' } })
  const fits = 'x'.repeat(await room(service))
  const over = new RegExp(`${MAX_ANSWER + 1}.*${MAX_ANSWER}`)
  await assertRefused(
    service,
    invalid('', 'PUT /clusters/one/patches/a', { body: { big: `${fits}x` }, says: over }),
  )
  const accepted = await service.call('PUT', '/clusters/one/patches/a', { body: { big: fits } })
  assert.equal(accepted.status, 200)
  assert.equal(await room(service), 0)
  for (const [on, body] of [
    ['PATCH /clusters/one', { cluster_name: 'one1' }],
    ['PATCH /clusters/one/platform_components/a', { oci_tag: 'v1.0.00' }],
    ['PATCH /platform_components/b', { component_version: '1.0.00' }],
    ['PUT /clusters/one/platform_components/c', {}],
  ] as const) {
    await assertRefused(service, invalid('', on, { body, says: new RegExp(String(MAX_ANSWER)) }))
  }
  const cluster = await service.call('PATCH', '/clusters/one', { body: { labels: { region: 'eu' } } })
  assert.equal(cluster.status, 200)
})

function granted(name: string) {
  return { subjects: [{ kind: 'Group', name }] }
}

test('the size of an answer is counted in bytes, on clusters and on definitions', async () => {
  const service = await startService()
  const says = new RegExp(String(MAX_ANSWER))
  const wide = '€'.repeat(400_000)
  await assertRefused(service, invalid('', 'PUT /clusters/one/patches/a', { body: { big: wide }, says }))
  await assertRefused(service, invalid('', 'PATCH /rolebindings/admins', { body: granted(wide), says }))
  const narrow = await service.call('PATCH', '/rolebindings/admins', { body: granted('x'.repeat(400_001)) })
  assert.equal(narrow.status, 200)
  await assertRefused(service, invalid('', 'PATCH /rolebindings/admins', { body: granted(wide), says }))
})

test('a definition that nobody is given may be larger than an answer, but cannot be assigned', async () => {
  const service = await startService()
  const body = { id: 'many', role: 'view', ...granted('x'.repeat(MAX_ANSWER)) }
  assert.equal((await service.call('POST', '/rolebindings', { body })).status, 201)
  const says = new RegExp(String(MAX_ANSWER))
  await assertRefused(service, invalid('', 'PUT /clusters/one/rolebindings/many', { body: {}, says }))
})

test('a cluster whose answer grew too large while it was deleted is not restored', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/one')
  const body = granted('x'.repeat(MAX_ANSWER))
  assert.equal((await service.call('PATCH', '/rolebindings/admins', { body })).status, 200)
  const says = new RegExp(String(MAX_ANSWER))
  const on = 'POST /clusters/one/restore'
  await assertRefused(service, { is: '', on, status: 409, error: 'conflict', says })
})

test('more than 10,000 inputs are refused by their number, and fewer by the size of their answer', async () => {
  const fleet = smallFleet()
  const rolebindings = Array.from({ length: MAX_INPUTS + 1 }, (_, i) => ({
    id: `${i}`,
    role: 'r',
    subjects: [],
  }))
  const tiny = { id: 'tiny', cluster_name: 't', cluster_dns: 't', environment: 'qa' }
  const service = await startService({ fleet: { ...fleet, rolebindings, clusters: [tiny] } })
  const given = rolebindings.map(({ id }) => ({ id }))
  const figures = new RegExp(`${MAX_INPUTS + 1}.*${MAX_INPUTS}`)
  await assertRefused(
    service,
    invalid('', 'PATCH /clusters/tiny', { body: { rolebindings: given }, says: figures }),
  )
  // The smallest input is longer than 92 bytes: its digests alone take 63.
  const says = new RegExp(`bytes: Flux takes at most ${MAX_ANSWER}`)
  await assertRefused(
    service,
    invalid('', 'PATCH /clusters/tiny', { body: { rolebindings: given.slice(0, MAX_INPUTS) }, says }),
  )
  const most = await service.call('PATCH', '/clusters/tiny', { body: { rolebindings: given.slice(0, 5000) } })
  assert.equal(most.status, 200, most.text)
  const { inputs } = (await service.call('GET', '/api/v2/flux/clusters/t/rolebindings')).body
  assert.equal(inputs.length, 5000)
})

test('what is not HTTP, or has headers without end, is refused in the same words', async () => {
  const service = await startService()
  const { port } = service.app.server.address() as AddressInfo
  for (const [sent, status] of [
    ['NOT HTTP\r\n\r\n', '400 Bad Request'],
    [
      `GET /health HTTP/1.1\r\nHost: x\r\nX-Long: ${'a'.repeat(20_000)}\r\n\r\n`,
      '431 Request Header Fields Too Large',
    ],
  ] as const) {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8')
    socket.write(sent)
    const [head = '', body = ''] = (await socket.toArray()).join('').split('\r\n\r\n')
    assert.ok(head.startsWith(`HTTP/1.1 ${status}`), head)
    assert.equal(JSON.parse(body).error, 'validation_error')
  }
  assert.equal((await service.call('GET', '/health')).status, 200)
})
