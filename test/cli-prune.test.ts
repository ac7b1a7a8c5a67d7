// What `apply --prune` may delete in the name of whoever runs it: sets that others wrote into, as processes.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { cli, type Run } from './cli-process.ts'
import { assertProblem, changesOf, run, start } from './every-store.ts'
import { type Answer, type startService, type TestService, temporaryFolder } from './service.ts'

const CONCURRENTLY = { concurrency: 3 }
const ATTACK = { documents: { namespaces: ['team-x', 'team-y'], clusters: ['uat-us-01'] } }
/** What an editor may be given who applies namespaces. */
const RECOMMENDED = { types: ['namespaces', 'applied_sets'] }

function cluster(id: string, environment: string, more: JsonObject = {}) {
  return { id, cluster_name: id, cluster_dns: `${id}.k8s.example.com`, environment, ...more }
}

const fleet = {
  namespaces: [{ id: 'base' }],
  clusters: [
    cluster('uat-us-01', 'uat', { namespaces: [{ id: 'base' }] }),
    cluster('dev-us-01', 'dev'),
    cluster('qa-us-01', 'qa'),
  ],
}

interface World {
  readonly service: TestService
  /** Applies these namespaces as the set "fleet", as whoever has the token or else as an admin. */
  apply(ids: readonly string[], more?: readonly string[], token?: string): Promise<Run>
  /** Makes a token. */
  issue(name: string, scope?: JsonObject): Promise<string>
}

async function startWorld(t: TestContext, options: Parameters<typeof startService>[0] = {}): Promise<World> {
  const service = await start(t, { fleet, ...options })
  const file = join(temporaryFolder(t), 'fleet.json')
  return {
    service,
    apply(ids, more = ['--prune'], token) {
      writeFileSync(file, JSON.stringify({ namespaces: ids.map((id) => ({ id })) }))
      const env = token === undefined ? {} : { FLUX_API_WRITE_TOKEN: token }
      return cli(['apply', '-f', file, ...more], { url: service.url, env })
    },
    async issue(name, scope = {}) {
      const made = await service.call('POST', '/tokens', { body: { name, role: 'editor', ...scope } })
      assert.equal(made.status, 201, made.text)
      return made.body.secret
    },
  }
}

function assertDone({ code, stdout, stderr }: Run): void {
  assert.equal(code, 0, stdout + stderr)
}

function patchSet({ service }: World, token: string, body: JsonObject = ATTACK): Promise<Answer> {
  return service.call('PATCH', '/applied_sets/fleet', { token, body })
}

async function heldBy({ service }: World): Promise<JsonObject> {
  return (await service.call('GET', '/applied_sets/fleet')).body.documents
}

async function isThere({ service }: World, path: string): Promise<boolean> {
  return (await service.call('GET', path)).status === 200
}

/** One warning for each document that was left, with what to do about it. */
function assertLeft({ stderr }: Run, ...told: readonly RegExp[]): void {
  const lines = stderr.trimEnd().split('\n')
  assert.equal(lines.length, told.length, stderr)
  for (const [i, expected] of told.entries()) assert.match(lines[i] ?? '', expected)
}

describe('an editor of one tier', CONCURRENTLY, () => {
  for (const [who, scope] of Object.entries({
    'of dev': { selector: 'environment=dev' },
    'of types': RECOMMENDED,
  })) {
    test(`${who} cannot make the pipeline of an admin delete a cluster elsewhere`, async (t) => {
      const world = await startWorld(t)
      const { service, apply, issue } = world
      const mallory = await issue('mallory', scope)
      assertDone(await apply(['team-x', 'team-y']))
      const { revision } = service.engine.state
      assertProblem(await service.call('DELETE', '/clusters/uat-us-01', { token: mallory }), 403, 'forbidden')
      const refused = await patchSet(world, mallory)
      assertProblem(refused, 403, 'forbidden')
      assert.match(refused.body.message, /^this changes applied_sets\/fleet, .*: clusters\/uat-us-01\. /)
      assert.deepEqual(refused.body.details.length, 1)
      const unchanged = await apply(['team-x', 'team-y'])
      assertDone(unchanged)
      assert.equal(unchanged.stdout, 'nothing to change\n')
      assert.equal(service.engine.state.revision, revision)
      assert.ok(await isThere(world, '/clusters/uat-us-01'))
    })
  }

  test('cannot do it by a new set, a batch, a deletion or a way back either', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    const mallory = await issue('mallory', { selector: 'environment=dev' })
    assertDone(await apply(['team-x']))
    await run(service, ['PATCH', '/applied_sets/fleet', ATTACK])
    const poisoned = service.engine.state.revision
    await run(service, [
      'PATCH',
      '/applied_sets/fleet',
      { documents: { namespaces: ['team-x'], clusters: null } },
    ])
    const cleaned = service.engine.state.revision
    const attempts: [method: string, path: string, body?: JsonObject][] = [
      ['POST', '/applied_sets', { id: 'other', ...ATTACK }],
      ['POST', '/batch', { operations: [{ op: 'patch', type: 'applied_sets', id: 'fleet', patch: ATTACK }] }],
      ['POST', `/revisions/${cleaned}/revert`],
      ['POST', '/rollback', { to_revision: poisoned, types: ['applied_sets'] }],
    ]
    for (const [method, path, body] of attempts)
      assertProblem(await service.call(method, path, { token: mallory, body }), 403, 'forbidden')
    await run(service, ['PATCH', '/applied_sets/fleet', ATTACK])
    assertProblem(await service.call('DELETE', '/applied_sets/fleet', { token: mallory }), 403, 'forbidden')
    assertProblem(await patchSet(world, mallory, { documents: { clusters: null } }), 403, 'forbidden')
  })

  test('applies and prunes what is inside the scope', async (t) => {
    const world = await startWorld(t)
    const dev = await world.issue('dev', { selector: 'environment=dev' })
    const typed = await world.issue('typed', RECOMMENDED)
    for (const [name, token] of Object.entries({ dev, typed })) {
      const named = ['--prune', '--name', name]
      assertDone(await world.apply([`${name}-x`, `${name}-y`], named, token))
      const pruned = await world.apply([`${name}-y`], named, token)
      assertDone(pruned)
      assert.match(pruned.stdout, new RegExp(`^namespaces/${name}-x deleted$`, 'm'))
      assert.equal(pruned.stderr, '')
    }
  })
})

describe('a set that somebody wrote into', CONCURRENTLY, () => {
  test('is not pruned of what it did not apply, and who runs the pipeline is told', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    const mallory = await issue('mallory')
    assertDone(await apply(['team-x', 'team-y']))
    const poisoned = await patchSet(world, mallory)
    assert.equal(poisoned.status, 200)
    const revision = Number(poisoned.headers['x-revision'])
    const told = new RegExp(
      `^Warning: clusters/uat-us-01 is not pruned: it is in the set "fleet" since revision ${revision} by mallory \\(\\S+Z\\), which did not change it\\. If it is to go: flux-resourceset-cli cluster delete uat-us-01$`,
    )
    for (const more of [['--prune'], ['--prune', '--name', 'fleet'], ['--prune', '--dry-run']]) {
      const result = await apply(['team-x', 'team-y'], more)
      assertDone(result)
      assert.doesNotMatch(result.stdout, /uat-us-01/)
      assertLeft(result, told)
    }
    assert.equal(service.engine.state.revision, revision)
    const other = await apply(['team-y'])
    assertDone(other)
    assert.match(other.stdout, /^namespaces\/team-x deleted$/m)
    assertLeft(other, told)
    assert.ok(await isThere(world, '/clusters/uat-us-01'))
    // It is told as long as it is there.
    assert.deepEqual(await heldBy(world), { clusters: ['uat-us-01'], namespaces: ['team-y'] })
  })

  test('looks to diff as it does to apply', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    assertDone(await apply(['team-x', 'team-y']))
    await patchSet(world, await issue('mallory'))
    const file = join(temporaryFolder(t), 'fleet.json')
    writeFileSync(file, JSON.stringify({ namespaces: [{ id: 'team-x' }, { id: 'team-y' }] }))
    const same = await cli(['diff', '-f', file, '--prune'], { url: service.url })
    assert.deepEqual([same.code, same.stdout], [0, ''])
    assertLeft(same, /clusters\/uat-us-01 is not pruned/)
    writeFileSync(file, JSON.stringify({ namespaces: [{ id: 'team-x' }] }))
    const differs = await cli(['diff', '-f', file, '--prune'], { url: service.url })
    assert.equal(differs.code, 4)
    assert.match(differs.stdout, /^- namespaces\/team-y$/m)
    assert.doesNotMatch(differs.stdout, /uat-us-01/)
  })

  test('is not taken for one’s own by rolling back to when it was so', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    assertDone(await apply(['team-x']))
    await patchSet(world, await issue('mallory'), { documents: { clusters: ['uat-us-01'] } })
    const poisoned = service.engine.state.revision
    await run(
      service,
      ['PATCH', '/applied_sets/fleet', { documents: { clusters: null } }],
      ['PATCH', '/clusters/uat-us-01', { node_count: 5 }],
      ['POST', '/rollback', { to_revision: poisoned }],
    )
    assert.deepEqual((await heldBy(world)).clusters, ['uat-us-01'])
    const result = await apply(['team-x'])
    assertLeft(result, new RegExp(`since revision ${poisoned} by mallory`))
    assert.ok(await isThere(world, '/clusters/uat-us-01'))
  })

  test('is told of in a bounded number of lines', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    const many = Array.from({ length: 30 }, (_, i) => `n${String(i).padStart(2, '0')}`)
    const operations = many.map((id) => ({ op: 'create', type: 'namespaces', document: { id } }))
    await run(service, ['POST', '/batch', { operations }])
    assertDone(await apply(['team-x']))
    await patchSet(world, await issue('mallory'), { documents: { namespaces: ['team-x', ...many] } })
    const { stderr } = await apply(['team-x'])
    const lines = stderr.trimEnd().split('\n')
    assert.equal(lines.length, 21)
    assert.equal(lines.at(-1), 'Warning: 10 more documents of the set are not pruned')
  })

  test('never has other sets pruned', async (t) => {
    const world = await startWorld(t)
    assertDone(await world.apply(['team-x']))
    await run(
      world.service,
      ['POST', '/applied_sets', { id: 'other' }],
      ['PATCH', '/applied_sets/fleet', { documents: { applied_sets: ['other'] } }],
    )
    assertLeft(await world.apply(['team-x']), /applied_sets\/other is not pruned: no file can hold it/)
    assert.ok(await isThere(world, '/applied_sets/other'))
  })
})

describe('what a set has of its own', CONCURRENTLY, () => {
  test('may have been there before: whoever took it into the set prunes it, and nobody else', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    await run(service, ['POST', '/namespaces', { id: 'there' }])
    const [alice, bob] = [await issue('alice'), await issue('bob')]
    assertDone(await apply(['there', 'kept'], [], alice))
    assertLeft(await apply(['kept'], ['--prune'], bob), /namespaces\/there is not pruned: .* by alice/)
    const pruned = await apply(['kept'], ['--prune'], alice)
    assertDone(pruned)
    assert.equal(pruned.stderr, '')
    assert.match(pruned.stdout, /^namespaces\/there deleted$/m)
  })

  test('is pruned by anybody, when it was made in the same revision', async (t) => {
    const world = await startWorld(t)
    const { apply, issue } = world
    assertDone(await apply(['made', 'kept'], [], await issue('alice')))
    const pruned = await apply(['kept'], ['--prune'], await issue('bob'))
    assert.match(pruned.stdout, /^namespaces\/made deleted$/m)
    assert.equal(pruned.stderr, '')
  })

  test('is pruned after others have edited it, moved it in and out of the set, or taken that back', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    const bob = await issue('bob')
    assertDone(await apply(['made', 'kept']))
    for (let i = 0; i < 25; i++)
      await service.call('PATCH', '/namespaces/made', { token: bob, body: { labels: { i: String(i) } } })
    assertDone(await apply(['kept', 'more']))
    const pruned = service.engine.state.revision
    const reverted = await service.call('POST', `/revisions/${pruned}/revert`, { token: bob })
    assert.equal(reverted.status, 200, reverted.text)
    assert.ok(await isThere(world, '/namespaces/made'))
    const again = await apply(['kept'])
    assert.match(again.stdout, /^namespaces\/made deleted$/m)
    assert.equal(again.stderr, '')
  })

  test('is not what somebody else made anew under its name', async (t) => {
    const world = await startWorld(t)
    const { service, apply, issue } = world
    const bob = await issue('bob')
    assertDone(await apply(['made', 'kept']))
    await run(service, ['DELETE', '/namespaces/made'])
    const made = await service.call('POST', '/namespaces', { token: bob, body: { id: 'made' } })
    assert.equal(made.status, 201)
    const revision = made.headers['x-revision']
    const result = await apply(['kept'])
    assertLeft(result, new RegExp(`made is not pruned: it was made anew .*, in revision ${revision} by bob`))
    assert.ok(await isThere(world, '/namespaces/made'))
  })

  test('is unknown where the log was pruned, and stays', async (t) => {
    const store = openMemoryStore()
    const world = await startWorld(t, { store })
    assertDone(await world.apply(['made', 'kept']))
    const { revision } = world.service.engine.state
    await store.prune({ revision, time: new Date().toISOString(), hash: '', state: '' })
    const result = await world.apply(['kept'])
    assertDone(result)
    assertLeft(result, /namespaces\/made is not pruned: the log does not reach back to when it came into/)
    assert.ok(await isThere(world, '/namespaces/made'))
    assert.deepEqual(await heldBy(world), { namespaces: ['kept', 'made'] })
  })

  test('is looked for in all of a long history', async (t) => {
    const world = await startWorld(t)
    const { service, apply } = world
    assertDone(await apply(['made', 'kept']))
    for (let i = 0; i < 45; i++)
      await run(service, [
        'PATCH',
        '/applied_sets/fleet',
        { documents: { rolebindings: i % 2 ? ['r'] : null } },
      ])
    assertDone(await apply(['kept']))
    assert.deepEqual(await changesOf(service, service.engine.state.revision), [
      'delete namespaces/made',
      'update applied_sets/fleet',
    ])
  })
})
