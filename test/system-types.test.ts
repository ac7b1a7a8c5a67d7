// A type of the service's own is registered in one place: everything else asks it, as made-up types show.
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import type { JsonObject } from '../src/base/json.ts'
import { finish } from '../src/base/steps.ts'
import type { Change } from '../src/domain/documents/view.ts'
import type { Document, SystemType } from '../src/domain/types/resource-type.ts'
import { systemTypes } from '../src/domain/types/system-types.ts'
import { planOf } from '../src/engine/plan.ts'
import type { RegisteredTypes } from '../src/registry/build-types.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { builtInTypes, startService, type TestService } from './service.ts'

/** Of one cluster each, with a secret, and never taken back. */
const ROBOTS: SystemType = {
  name: 'robots',
  singular: 'robot',
  isSearchable: true,
  inPartialCopies: true,
  clusterOf: ({ cluster }) => cluster as string | undefined,
  redact: ({ secret: _secret, ...robot }) => robot,
  planned: ({ id, cluster }) => ({ id, cluster: cluster as string }),
  irreversible: {
    mayStay: (_before, after) => after === undefined,
    reason: 'token_not_restorable',
    refusal: (revision) => `revision ${revision} changed a robot: build another one`,
    warning: (scrapped) => `scrapped for good: ${scrapped.map(({ id }) => id).join()}`,
  },
  gaugeHelp: 'Robots.',
}

/** Kept by one service for itself. */
const DIARIES: SystemType = {
  name: 'diaries',
  singular: 'diary',
  isSearchable: false,
  inPartialCopies: false,
}

const ROBOT = { id: 'r1', cluster: 'one', secret: 'hidden' }

function typesWith(...more: readonly SystemType[]): RegisteredTypes {
  const types = builtInTypes()
  return { ...types, system: systemTypes([...types.system.all, ...more]) }
}

interface Started {
  readonly service: TestService
  /** Commits documents, which no route of the service could. */
  commit(documents: Readonly<Record<string, JsonObject & { readonly id: string }>>): Promise<number>
}

async function start(t: TestContext, types = typesWith(ROBOTS, DIARIES)): Promise<Started> {
  const store = openMemoryStore()
  const service = await startService({ store, types })
  t.after(() => service.stop())
  return {
    service,
    async commit(documents) {
      const { revision } = await store.head()
      const meta = { actor: 'a', message: null, request_id: 'r', client_address: null, operation: 'by hand' }
      const changes = Object.entries(documents).map(([type, document]) => {
        return { type, id: document.id, after: { json: JSON.stringify(document), deleted: false } }
      })
      const committed = await store.commit(revision, { ...meta, time: new Date().toISOString(), changes })
      assert.ok(committed.ok)
      await service.engine.catchUp()
      return revision + 1
    },
  }
}

test('a system type is shown in the log and in previews, without what it redacts', async (t) => {
  const { service, commit } = await start(t)
  const revision = await commit({ robots: ROBOT })
  const { body: list } = await service.call('GET', '/revisions?type=robots')
  const { body: one } = await service.call('GET', `/revisions/${revision}`)
  const shown = { id: 'r1', cluster: 'one' }
  for (const { changes } of [list[0], one])
    assert.deepEqual(changes, [{ type: 'robots', id: 'r1', op: 'create', before: null, after: shown }])
  // Purging its cluster takes it away.
  const path = '/clusters/one?purge=true&confirm=removals'
  const preview = await service.call('DELETE', `${path}&dry_run=true`)
  const changed = preview.body.changes.find(({ type }: Change) => type === 'robots')
  assert.deepEqual(changed, { type: 'robots', id: 'r1', op: 'delete', before: shown, after: null })
  for (const { text } of [preview, await service.call('DELETE', path)])
    assert.ok(!text.includes('hidden'), text)
  assert.equal(service.engine.state.get('robots', 'r1'), undefined)
})

test('a system type can be searched for when it says so, and its documents are counted', async (t) => {
  const { service, commit } = await start(t)
  await commit({ robots: ROBOT, diaries: { id: 'd' } })
  const { body: found } = await service.call('GET', '/revisions?type=robots&id=r1')
  assert.equal(found.length, 1)
  const { status, text } = await service.call('GET', '/revisions?type=diaries')
  assert.equal(status, 400)
  assert.match(text, /known are .*, tokens, rollouts, holds, robots"/)
  const { body: api } = await service.call('GET', '/openapi.json', { token: null })
  const parameters = api.paths['/revisions'].get.parameters as {
    name?: string
    schema?: { enum?: string[] }
  }[]
  const names = parameters.find(({ name }) => name === 'type')?.schema?.enum
  assert.ok(names?.includes('robots') && !names.includes('diaries'), String(names))
  const { text: metrics } = await service.call('GET', '/metrics', { token: null })
  assert.match(metrics, /^# HELP flux_resourceset_robots Robots\.\n.*\nflux_resourceset_robots 1$/m)
  assert.ok(!metrics.includes('flux_resourceset_diaries'))
})

test('a system type is bound by a plan in what it says, and in all of a document when it says nothing', () => {
  const planFor = (type: string, document: Document, system: readonly SystemType[]): string => {
    const json = JSON.stringify(document)
    const after = { document, deleted: false, json, size: json.length }
    return finish(planOf(typesWith(...system), [{ type, id: document.id, before: undefined, after }]))
  }
  const others = { ...ROBOT, secret: 'another' }
  assert.equal(planFor('robots', ROBOT, [ROBOTS]), planFor('robots', others, [ROBOTS]))
  assert.notEqual(planFor('robots', ROBOT, [ROBOTS]), planFor('robots', { ...ROBOT, cluster: 'x' }, [ROBOTS]))
  assert.notEqual(planFor('robots', ROBOT, []), planFor('robots', others, []))
})

test('a system type is not taken back by a revert or a rollback, which say so in its words', async (t) => {
  const { service, commit } = await start(t)
  const revision = await commit({ robots: ROBOT, namespaces: { id: 'team-c', labels: {}, annotations: {} } })
  const refused = await service.call('POST', `/revisions/${revision}/revert`, { body: {} })
  assert.equal(refused.status, 409)
  assert.equal(refused.body.message, `revision ${revision} changed a robot: build another one`)

  const rolledBack = await service.call('POST', '/rollback', { body: { to_revision: revision - 1 } })
  assert.equal(rolledBack.body.changes, 1, rolledBack.text)
  assert.ok(service.engine.state.get('robots', 'r1') && !service.engine.state.get('namespaces', 'team-c'))

  const purged = await service.call('DELETE', '/clusters/one?purge=true&confirm=removals')
  const reverted = await service.call('POST', `/revisions/${purged.headers['x-revision']}/revert`, {
    body: {},
  })
  assert.equal(reverted.status, 200, reverted.text)
  assert.ok(reverted.body.warnings.includes('scrapped for good: r1'), reverted.text)
  assert.ok(service.engine.state.get('clusters', 'one') && !service.engine.state.get('robots', 'r1'))
})

test('a system type with a resource file too is left alone by a rollback when it cannot be taken back', async (t) => {
  const { name, singular } = builtInTypes().get('namespaces') ?? assert.fail()
  const { service } = await start(t, typesWith({ ...ROBOTS, name, singular }))
  const before = service.engine.state.revision
  await service.call('POST', '/namespaces', { body: { id: 'team-c' } })
  const { body } = await service.call('POST', '/rollback', { body: { to_revision: before } })
  assert.equal(body.changes, 0)
})

test('a system type is in copies of a part of the fleet as it says: never, or with its cluster alone', async (t) => {
  const { service, commit } = await start(t)
  await commit({ robots: ROBOT, diaries: { id: 'd1', text: 'confidential' } })
  await commit({ robots: { ...ROBOT, id: 'r2', cluster: 'two' } })
  await commit({ robots: { id: 'r3' } })
  const copied = async (query: string): Promise<string[]> => {
    const { status, text } = await service.call('GET', `/log?since=0${query}`)
    assert.equal(status, 200, text)
    return text.match(/(?<="type":"(?:robots|diaries)","id":")\w+/g) ?? []
  }
  assert.deepEqual(await copied(''), ['r1', 'd1', 'r2', 'r3'])
  assert.deepEqual(await copied('&selector=environment%3Ddev'), ['r1', 'r3'])
  assert.deepEqual(await copied('&selector=environment%3Dprod'), ['r2', 'r3'])
})

test('a store that went on from a partial copy reverts what was copied, and still knows what it is a copy of', async (t) => {
  const { service, commit } = await start(t)
  const edited = await service.call('PATCH', '/namespaces/team-a', { body: { labels: { x: '1' } } })
  const outside = await service.call('PATCH', '/clusters/two', { body: { node_count: 3 } })
  await commit({ robots: ROBOT })
  const { text } = await service.call('GET', '/log?since=0&selector=environment%3Ddev')
  const store = openMemoryStore()
  await importLog(store, Readable.from(text.trimEnd().split('\n')))
  const part = await startService({ store, fleet: {}, types: service.types })
  t.after(() => part.stop())
  const source = part.engine.state.get('sources', 'upstream')
  assert.ok(source)

  const revert = (revision: unknown) => part.call('POST', `/revisions/${revision}/revert`, { body: {} })
  const reverted = await revert(edited.headers['x-revision'])
  assert.equal(reverted.status, 200, reverted.text)
  assert.deepEqual([reverted.body.changes, reverted.body.warnings], [1, []])
  assert.deepEqual(part.engine.state.get('namespaces', 'team-a')?.document.labels, { team: 'a' })
  const nothing = await revert(outside.headers['x-revision'])
  assert.deepEqual([nothing.status, nothing.body.changes], [200, 0], nothing.text)
  assert.equal(part.engine.state.get('sources', 'upstream'), source)
})
