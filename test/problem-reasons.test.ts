// Reasons of refusals: the docs and the description tell all of them, and answers have them.
import assert from 'node:assert/strict'
import { globSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { REASON_TEXTS } from '../src/api/problem-reasons.ts'
import { REASONS } from '../src/base/problem.ts'
import { startService } from './service.ts'

const DOCS = join(import.meta.dirname, '../docs/api.md')
const SRC = join(import.meta.dirname, '../src')
const TABLE =
  /(?<=<!-- reasons: made by test\/problem-reasons\.test\.ts -->\n)[\s\S]*?(?=\n<!-- end of reasons -->)/

function table(): string {
  const rows = Object.entries(REASON_TEXTS).flatMap(([code, reasons]) =>
    Object.entries(reasons).map(
      ([reason, { meaning, advice }]) => `| \`${code}\` | \`${reason}\` | ${meaning} | ${advice} |`,
    ),
  )
  return ['| code | reason | meaning | what to do |', '|---|---|---|---|', ...rows].join('\n')
}

test('the docs have a table of all reasons', () => {
  const text = readFileSync(DOCS, 'utf8')
  if (process.env.DOCS_UPDATE) writeFileSync(DOCS, text.replace(TABLE, table))
  assert.equal(TABLE.exec(readFileSync(DOCS, 'utf8'))?.[0], table())
})

test('every reason is given somewhere', () => {
  const tables = ['base/problem.ts', 'api/problem-reasons.ts']
  const code = globSync('**/*.ts', { cwd: SRC })
    .filter((file) => !file.endsWith('.test.ts') && !tables.includes(file))
    .map((file) => readFileSync(join(SRC, file), 'utf8'))
    .join('')
  // Of a role that is lacking, the role is a part of the reason.
  const reasons = Object.values(REASONS).flat()
  const idle = reasons.filter((reason) => !reason.startsWith('needs_') && !code.includes(`'${reason}'`))
  assert.deepEqual(idle, [])
})

test('the description lists all reasons', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  const { body } = await service.call('GET', '/openapi.json')
  const listed = body.components.schemas.error.properties.reason.enum
  assert.deepEqual(listed.toSorted(), [...new Set(Object.values(REASONS).flat())].toSorted())
})

const component = (id: string, depends_on: string[] = []) => ({
  id,
  component_path: 'x',
  component_version: '1',
  oci_url: 'oci://registry.example.com/x',
  oci_tag: 'v1',
  depends_on,
})
const cluster = { cluster_name: 'x', environment: 'dev' }

for (const [reason, status, method, url, body, headers] of [
  ['already_exists', 409, 'POST', '/namespaces', { id: 'team-a' }],
  ['already_exists', 412, 'PUT', '/namespaces/team-a', {}, { 'if-none-match': '*' }],
  ['in_use', 409, 'DELETE', '/namespaces/team-a'],
  ['dns_taken', 409, 'POST', '/clusters', { id: 'x', ...cluster, cluster_dns: 'one.k8s.example.com' }],
  ['not_deleted', 409, 'POST', '/clusters/one/restore'],
  ['not_assigned', 404, 'DELETE', '/clusters/two/namespaces/team-a'],
  ['unknown_id', 404, 'GET', '/namespaces/none'],
  ['unknown_id', 412, 'PUT', '/namespaces/none', {}, { 'if-match': '*' }],
  ['unknown_cluster', 404, 'GET', '/api/v2/flux/clusters/none.example.com/namespaces'],
  ['unknown_endpoint', 404, 'GET', '/api/v2/flux/clusters/one.k8s.example.com/none'],
  ['no_route', 404, 'GET', '/none'],
  ['unknown_method', 405, 'PUT', '/namespaces', {}],
  ['revision_mismatch', 412, 'PATCH', '/namespaces/team-a', {}, { 'if-match': '"99"' }],
  ['malformed_etag', 412, 'PATCH', '/namespaces/team-a', {}, { 'if-match': 'x' }],
  ['unknown_reference', 400, 'POST', '/platform_components', component('x', ['none'])],
  ['dependency_cycle', 400, 'PATCH', '/platform_components/a', { depends_on: ['c'] }],
  [
    'duplicate_reference',
    400,
    'PATCH',
    '/clusters/one',
    { namespaces: [{ id: 'team-a' }, { id: 'team-a' }] },
  ],
  ['unknown_parameter', 400, 'GET', '/namespaces?nmae=x'],
  ['revision_in_future', 400, 'GET', '/namespaces?at=99'],
  ['plan_changed', 409, 'PATCH', `/namespaces/team-a?plan=sha256:${'0'.repeat(64)}`, { labels: {} }],
  ['token_exists', 409, 'POST', '/tokens', { name: 'ci', role: 'viewer' }],
  [undefined, 400, 'POST', '/namespaces', { id: 'Not A Name' }],
] as const) {
  test(`${method} ${url} fails with ${status} and the reason ${reason}`, async (t) => {
    const service = await startService()
    t.after(() => service.stop())
    if (reason === 'token_exists')
      await service.call('POST', '/tokens', { body: { name: 'ci', role: 'viewer' } })
    const call = { ...(body && { body }), ...(headers && { headers }) }
    const answer = await service.call(method, url, call as Parameters<typeof service.call>[2])
    assert.equal(answer.status, status, answer.text)
    assert.equal(answer.body.reason, reason, answer.text)
  })
}

test('a batch says the reason of the operation that was refused', async (t) => {
  const service = await startService()
  t.after(() => service.stop())
  const create = (id: string) => ({ op: 'create', type: 'namespaces', document: { id } })
  const answer = await service.call('POST', '/batch', {
    body: { operations: [create('new'), create('team-a')] },
  })
  assert.deepEqual(
    [answer.status, answer.body.error, answer.body.reason],
    [409, 'conflict', 'already_exists'],
  )
})
