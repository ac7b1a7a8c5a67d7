import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { stringify } from 'yaml'
import { loadTypes } from './load-types.ts'

const BUILT_IN = join(import.meta.dirname, '../../resources')

/** A small type that is right, changed by what a test is about. */
function quota(more: object = {}, flux: object = {}, properties: object = {}): Record<string, unknown> {
  return {
    kind: 'quotas',
    apiVersion: 'v1',
    schema: {
      type: 'array',
      key: { name: 'id' },
      'x-flux': { endpoint: 'quotas', assigned_by: 'quotas', input: ['pods'], ...flux },
      items: { type: 'object', properties: { pods: { type: 'integer' }, ...properties } },
    },
    ...more,
  }
}

/** Loads files beside the built-in ones; what is wrong comes with the names of the files alone. */
function load(t: TestContext, files: Record<string, object | string>) {
  const folder = mkdtempSync(join(tmpdir(), 'types-'))
  t.after(() => rmSync(folder, { recursive: true }))
  for (const [name, content] of Object.entries(files))
    writeFileSync(join(folder, name), typeof content === 'string' ? content : stringify(content))
  const loaded = loadTypes([BUILT_IN, folder])
  return {
    types: loaded.ok ? loaded.types : undefined,
    problems: loaded.ok ? [] : loaded.problems.map((problem) => problem.replace(`${folder}/`, '')),
  }
}

test('a file that is right is loaded, with all methods where it names none', (t) => {
  const { types, problems } = load(t, { 'quota.yaml': quota() })
  assert.deepEqual(problems, [])
  assert.deepEqual([...(types?.get('quotas')?.methods ?? [])], ['post', 'put', 'patch', 'delete'])
})

test('mistakes of every sort are told at once, over all files, each with the name of its file', (t) => {
  const { problems } = load(t, {
    'a.yaml': quota(
      {},
      { asigned_by: 'quotas', input: ['valeu'], waits_among: { pods: '(' } },
      {
        host: { type: 'string', format: 'dnssubdomain' },
        size: { type: 'strnig' },
        limit: { type: 'integer', default: 'ten' },
      },
    ),
    'b.yaml': { ...quota(), kind: 'Bad-Kind', apiVersion: undefined, size: 1 },
    'c.yaml': 'kind: [broken',
    'd.yaml': {
      ...quota({}, { endpoint: 'd', assigned_by: 'd', noun: 'd', overrides: ['none'] }),
      kind: 'd',
    },
  })
  for (const [file, said] of [
    ['a.yaml', /\(asigned_by\)/],
    ['a.yaml', /x-flux\.input names "valeu"/],
    ['a.yaml', /waits_among\.pods: .*regular expression/i],
    ['a.yaml', /properties\.host\.format "dnssubdomain" is unknown: known are dns-label/],
    ['a.yaml', /properties\.size is a schema that cannot be used/],
    ['a.yaml', /properties\.limit\.default must be an integer, not "ten"/],
    ['b.yaml', /\/kind must match/],
    ['b.yaml', /'apiVersion'/],
    ['b.yaml', /\(size\)/],
    ['b.yaml', /endpoint "quotas" is used by quotas already/],
    ['c.yaml', /./],
    ['d.yaml', /x-flux\.overrides names "none"/],
  ] as const) {
    assert.ok(
      problems.some((problem) => problem.startsWith(`${file}: `) && said.test(problem)),
      `${file} ${said}\n${problems.join('\n')}`,
    )
  }
  assert.ok(problems.every((problem) => /^[abcd]\.yaml: /.test(problem)))
})

test('a mistake brings no others that only follow from it', (t) => {
  const { problems } = load(t, {
    'a.yaml': quota({}, { references: { pods: 'others' } }, { pods: 5 }),
    'b.yaml': 'kind: [others',
  })
  assert.equal(problems.length, 2, problems.join('\n'))
  assert.match(problems[0] ?? '', /^a\.yaml: \/schema\/items\/properties\/pods must be object/)
  assert.match(problems[1] ?? '', /^b\.yaml: /)
})

describe('a default that does not pass its own schema is reported', () => {
  for (const [what, files, said] of [
    ['of a field', quota({}, {}, { a: { type: 'string', default: 5 } }), /properties\.a\.default must be/],
    [
      'inside an object',
      quota({}, {}, { a: { type: 'object', properties: { b: { type: 'boolean', default: 'no' } } } }),
      /properties\.a\.properties\.b\.default must be a boolean/,
    ],
    [
      'of items',
      quota({}, {}, { a: { type: 'array', items: { type: 'string' }, default: ['x', 1] } }),
      /properties\.a\.default\/1 must be a string/,
    ],
    [
      'of a reference',
      quota({}, { reference: { enabled: { type: 'boolean', default: 'yes' } } }),
      /x-flux\.reference\.enabled\.default must be a boolean/,
    ],
    [
      'by its format',
      quota({}, {}, { a: { type: 'string', format: 'dns-label', default: 'Not A Label' } }),
      /properties\.a\.default must be an RFC 1123 label/,
    ],
  ] as const) {
    test(what, (t) => {
      const { problems } = load(t, { 'quota.yaml': files })
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', said)
    })
  }
})

test('names that the service has routes for, or will have, are no kinds', (t) => {
  const names = [
    'batch',
    'revisions',
    ...'alerts approvals console debug events fleet holds login mcp'.split(' '),
    ...'policies proposals reports rollout_plans rollouts status webhooks'.split(' '),
  ]
  for (const kind of names) {
    const { problems } = load(t, { 'a.yaml': quota({ kind }) })
    assert.deepEqual(problems, [`a.yaml: kind "${kind}" is taken by the service itself`])
  }
})

test('what clusters will report to is no endpoint', (t) => {
  for (const endpoint of ['ack', 'events']) {
    const { problems } = load(t, { 'a.yaml': quota({}, { endpoint }) })
    assert.deepEqual(problems, [`a.yaml: x-flux.endpoint "${endpoint}" is reserved`])
  }
})

test('what every input ends with is no field of x-flux.input, as a value or as a group', (t) => {
  const properties = { digest: { type: 'string' }, answer_digest: { type: 'string' } }
  for (const name of Object.keys(properties)) {
    for (const field of [name, { [name]: ['pods'] }]) {
      const { problems } = load(t, { 'a.yaml': quota({}, { input: ['pods', field] }, properties) })
      assert.deepEqual(problems, [`a.yaml: x-flux.input names "${name}", which every input has already`])
    }
  }
})

test("a field with the name of a digest may be in a group: there the name is the group's", (t) => {
  const input = ['pods', { image: ['digest', 'answer_digest'] }]
  const properties = { digest: { type: 'string' }, answer_digest: { type: 'string' } }
  const { types, problems } = load(t, { 'a.yaml': quota({}, { input }, properties) })
  assert.deepEqual(problems, [])
  assert.deepEqual(
    types?.byEndpoint('quotas')?.delivery.input.map(({ name }) => name),
    ['pods', 'image', 'cluster'],
  )
})

describe('methods', () => {
  test('those that are named are the methods of the type', (t) => {
    const methods = { resource: ['get', 'head', 'post'], instance: ['get'], instance_attrs: [] }
    const { types } = load(t, { 'a.yaml': quota({ methods }) })
    assert.deepEqual([...(types?.get('quotas')?.methods ?? [])], ['post'])
  })

  for (const [methods, said] of [
    [{ resource: ['get', 'delete'] }, /methods\.resource names "delete".*POST \/batch/],
    [{ instance: ['get', 'post'] }, /methods\.instance names "post"/],
    [{ instance: ['get', 'options'] }, /methods\.instance names "options"/],
    [{ instance: ['put'] }, /methods\.instance must have get/],
    [{ instance_attrs: ['get'] }, /methods\.instance_attrs must be empty/],
    [{ resources: ['get'] }, /\(resources\)/],
  ] as const) {
    test(`${JSON.stringify(methods)} is refused`, (t) => {
      const { problems } = load(t, { 'a.yaml': quota({ methods }) })
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', said)
    })
  }
})

describe('security', () => {
  const scheme = { bearer_auth: { type: 'http', scheme: 'bearer' } }
  const all = { resource: ['get', 'post'], instance: ['get', 'put', 'patch', 'delete'] }

  test('is taken where it says what is enforced anyway', (t) => {
    assert.deepEqual(load(t, { 'a.yaml': quota({ security: { scheme, ...all } }) }).problems, [])
    const methods = { resource: ['get'], instance: ['get'] }
    const security = { scheme, resource: ['get'], instance: ['get'] }
    assert.deepEqual(load(t, { 'a.yaml': quota({ methods, security }) }).problems, [])
  })

  for (const [security, said] of [
    [{ scheme, ...all, resource: ['post'] }, /security\.resource leaves get open.*docs\/access\.md/],
    [{ scheme, resource: all.resource }, /security\.instance leaves get, put, patch, delete open/],
    [{ ...all, scheme: { key: { type: 'apiKey', in: 'header', name: 'X-Key' } } }, /security\.scheme\.key/],
  ] as const) {
    test(`${JSON.stringify(security)} is refused, with what to use instead`, (t) => {
      const { problems } = load(t, { 'a.yaml': quota({ security }) })
      assert.equal(problems.length, 1, problems.join('\n'))
      assert.match(problems[0] ?? '', said)
      assert.match(problems[0] ?? '', /roles and scopes/)
    })
  }
})

test('what would change nothing is refused: a version in paths, and parameters that no list takes', (t) => {
  const { problems } = load(t, {
    'a.yaml': quota({ versionInPath: true, default_query_params: [{ name: 'limit' }, { name: 'page' }] }),
  })
  assert.equal(problems.length, 2)
  assert.match(problems[0] ?? '', /versionInPath must be false/)
  assert.match(problems[1] ?? '', /default_query_params names "page"/)
})

test('what a filter says and no list does is refused', (t) => {
  const filters = [
    { name: 'pods', schema: { type: 'integer', default: 3 } },
    { name: 'host', schema: { type: 'string', format: 'dnssubdomain' }, methods: ['get'] },
    { name: 'size', schema: { type: 'string' }, methods: ['post'] },
  ]
  const text = { type: 'string' }
  const file = quota({}, {}, { host: text, size: text })
  const { problems } = load(t, {
    'a.yaml': { ...file, schema: { ...(file.schema as object), query_params: filters } },
  })
  assert.equal(problems.length, 3, problems.join('\n'))
  assert.match(
    problems[0] ?? '',
    /query_params\.pods\.schema\.default is refused: .*whoever does not ask for it/,
  )
  assert.match(problems[1] ?? '', /query_params\.size\.methods must have get: only lists take filters/)
  assert.match(problems[2] ?? '', /query_params\.host\.schema\.format "dnssubdomain" is unknown/)
})
