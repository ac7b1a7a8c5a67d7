// What differs between two moments: for the whole fleet by the API, and for clusters by the command line.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { cli, outcomesOf } from './cli-process.ts'
import { run, start } from './every-store.ts'
import { smallFleet, type TestService } from './service.ts'

/** Revision 2 gives a another tag, 3 a namespace to `two`, 4 takes the first one back, 5 deletes `one`. */
async function fleet(t: TestContext, options = {}): Promise<TestService> {
  const service = await start(t, { fleet: smallFleet(), ...options })
  const revision = await run(
    service,
    ['PATCH', '/platform_components/a', { oci_tag: 'v1.5.0' }],
    ['PUT', '/clusters/two/namespaces/team-a', {}],
    ['PATCH', '/platform_components/a', { oci_tag: 'v1.0.0' }],
    ['DELETE', '/clusters/one?confirm=removals'],
  )
  assert.equal(revision, 5)
  return service
}

async function compare(service: TestService, query: string) {
  const { status, body, text } = await service.call('GET', `/revisions/compare?${query}`)
  assert.equal(status, 200, text)
  const changes = body.changes.map(({ op, type, id }: Record<string, string>) => `${op} ${type}/${id}`)
  const impact = body.impact.details.map(
    ({ cluster, endpoint }: Record<string, string>) => `${cluster} ${endpoint}`,
  )
  return { from: body.from, to: body.to, changes, impact }
}

test('the difference of two moments is what is left of all changes in between', async (t) => {
  const service = await fleet(t)
  assert.deepEqual(await compare(service, 'from=1&to=2'), {
    from: 1,
    to: 2,
    changes: ['update platform_components/a'],
    impact: ['one platform-components'],
  })
  // What was changed and changed back is no difference.
  const three = await compare(service, 'from=1&to=4')
  assert.deepEqual([three.impact, three.changes], [['two namespaces'], ['update clusters/two']])
  const all = await compare(service, 'from=1')
  assert.deepEqual([all.to, all.changes.includes('delete clusters/one')], [5, true])
  assert.deepEqual(
    new Set(all.impact),
    new Set(['one namespaces', 'one platform-components', 'one rolebindings', 'two namespaces']),
  )
  // Backwards.
  const back = await compare(service, 'from=5&to=3')
  assert.ok(back.changes.includes('restore clusters/one'), String(back.changes))
  assert.deepEqual((await compare(service, 'from=5&to=5')).changes, [])
})

test('a selector chooses clusters at either moment, also by the version that they were served then', async (t) => {
  const service = await fleet(t)
  assert.deepEqual((await compare(service, 'from=1&selector=environment%3Dprod')).impact, ['two namespaces'])
  const one = await compare(service, 'from=1&to=2&selector=version.a%3Dv1.5.0')
  assert.deepEqual(one.impact, ['one platform-components'])
  const wrong = await service.call('GET', '/revisions/compare?from=99')
  assert.match(wrong.body.message, /\?from is revision 99, which is still to come/)
  assert.equal((await service.call('GET', '/revisions/compare')).status, 400)
  assert.match(
    (await service.call('GET', '/revisions/compare?from=1&selector=health%3Dfailed')).text,
    /health/,
  )
})

async function lines(t: TestContext) {
  const service = await fleet(t)
  return { service, ...outcomesOf((args) => cli(args, { url: service.url })) }
}

test('diff --from shows what has changed since then, and exits with 4', async (t) => {
  const { service, fail, succeed } = await lines(t)
  const run = (line: string) => cli(line.split(' '), { url: service.url })
  const { code, stdout } = await run('diff --from 1 --to 2 -l environment=dev')
  assert.equal(code, 4)
  assert.match(
    stdout,
    /^revision 1 → 2: 1 document\n~ platform_components\/a\n {4}\/oci_tag: "v1.0.0" → "v1.5.0"\n/,
  )
  assert.match(
    stdout,
    /platform-components of one \(dev\)\n {4}~ a\n {8}\/source\/oci_tag: "v1.0.0" → "v1.5.0"\n$/,
  )
  assert.equal((await run('diff --from 5 --to now')).code, 0)
  assert.equal((await run('diff --from 1h')).code, 4)
  await fail(2, 'compare what?', ['diff'])
  await fail(2, 'not both', ['diff', '-f', 'x.yaml', '--from', '1'])
  assert.match((await succeed(['show', '1..2'])).stdout, /^revision 1 → 2: 1 document\n/)
  assert.match((await succeed(['show', '3..'])).stdout, /^revision 3 → 5: 2 documents\n/)
  assert.match((await succeed(['show'])).stdout, /^Revision: +5\n/)
})

test('cluster diff compares what two clusters get, or one then and now, but not their names', async (t) => {
  const { service, fail } = await lines(t)
  const run = (line: string) => cli(line.split(' '), { url: service.url })
  const two = await run('cluster diff one two --at 4')
  assert.deepEqual(
    [two.code, two.stdout],
    [4, 'platform-components\n  - a\n  - b\nrolebindings\n  - admins\n'],
  )
  assert.equal(two.stderr, '0 inputs with another value, 3 on one side only\n')
  const then = await run('cluster diff two --at 1 --type namespace')
  assert.deepEqual([then.code, then.stdout], [4, 'namespaces\n  + team-a\n'])
  const same = await run('cluster diff two --at 3')
  assert.deepEqual([same.code, same.stdout, same.stderr], [0, '', 'no difference\n'])
  await run('component assign a --cluster two --yes')
  const pinned = await run('component assign a --cluster two --oci-tag v3 --yes')
  assert.equal(pinned.code, 0, pinned.stderr)
  const tag = await run('cluster diff two --at 6 -o json')
  const [{ changed }] = JSON.parse(tag.stdout)
  assert.deepEqual(changed, [
    { id: 'a', fields: [{ path: '/source/oci_tag', before: 'v1.0.0', after: 'v3' }] },
  ])
  await fail(2, 'compare it with what?', ['cluster', 'diff', 'two'])
  await fail(2, '--type must be one of', ['cluster', 'diff', 'two', '--at', '1', '--type', 'clusters'])
})

test('describe shows a cluster as it was then', async (t) => {
  const { succeed, fail } = await lines(t)
  const { stdout } = await succeed(['cluster', 'describe', 'one', '--at', '2'])
  assert.match(stdout, /v1\.5\.0/)
  assert.match(stdout, /Last changes\nREVISION .*\n2 .*\n1 .*\n$/)
  await fail(1, 'no cluster "one"', ['cluster', 'describe', 'one'])
})
