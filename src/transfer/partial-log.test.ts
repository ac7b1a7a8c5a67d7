import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { AUTHOR, command, load, start, types } from '../../test/random-fleet.ts'
import { parseSelector } from '../domain/access/selector.ts'
import { asToken, TOKENS } from '../domain/access/token.ts'
import type { Command } from '../domain/commands/command.ts'
import { renderInputs } from '../domain/delivery/render-inputs.ts'
import { servedTo } from '../domain/delivery/served-view.ts'
import type { Entry } from '../domain/documents/view.ts'
import { type Document, dnsOf } from '../domain/types/resource-type.ts'
import { SOURCES } from '../domain/types/system-types.ts'
import type { Engine } from '../engine/engine.ts'
import { newSecret, newToken, tokenIdOf } from '../engine/token-secret.ts'
import { openMemoryStore } from '../store/memory.ts'
import type { DocumentVersion, Store } from '../store/store.ts'
import { type ExportOptions, exportLog } from './export-log.ts'
import { type Imported, importLog } from './import-log.ts'
import type { Selection } from './partial-log.ts'
import { StreamError } from './transfer-items.ts'
import { documentsAt, StateSeal, verifyLog } from './verify-log.ts'

const NOW = new Date(0)
const NAMES = ['k0.example.com', 'k1.example.com', 'k2.example.com']
const CLUSTERS = types.cluster.type.name
const CONFIRMED = { confirmRemovals: true }
const INVENTORIES = new Set(types.system.all.filter(({ holds }) => holds).map(({ name }) => name))

function selectionOf(text: string): Selection {
  const parsed = parseSelector(types, text)
  return parsed.ok ? { selector: parsed.selector, types } : assert.fail(parsed.message)
}

function follow(source: Store, target: Store, options: Partial<ExportOptions> = {}): Promise<Imported> {
  return importLog(target, exportLog(source, { since: 0, now: NOW, ...options }))
}

/** All that there is to know of a store's documents. */
async function documentsOf(store: Store): Promise<Map<string, DocumentVersion>> {
  const found = new Map<string, DocumentVersion>()
  for await (const document of store.documents())
    found.set(`${document.type}/${document.id}`, { ...document })
  return found
}

/** Gives up the log up to a revision. */
async function pruneTo(store: Store, revision: number): Promise<void> {
  const seal = new StateSeal()
  for await (const document of documentsAt(store, revision)) seal.add(document)
  for await (const { meta, hash } of store.log(revision - 1, revision)) {
    const anchor = { revision, time: meta.time, hash }
    return store.prune({ ...anchor, state: seal.digest(anchor) })
  }
  assert.fail(`there is no revision ${revision}`)
}

/** What a part is to hold of a source, in the simplest words. */
async function partOf(source: Store, { selector }: Selection): Promise<Map<string, DocumentVersion>> {
  const all = await documentsOf(source)
  const clusters = [...all.values()]
    .filter(({ type }) => type === CLUSTERS)
    .map(({ id, deleted, json }) => ({ id, deleted, document: JSON.parse(json) as Document }))
  const matches = (id: string | undefined): boolean => {
    const found = clusters.find((cluster) => cluster.id === id)
    return found !== undefined && selector.matches(found.document)
  }
  const isTaken = (dns: string): boolean =>
    clusters.some(
      ({ id, deleted, document }) => !deleted && !matches(id) && dnsOf(types.cluster, document) === dns,
    )
  return new Map(
    [...all].filter(([, { type, id, deleted, json }]) => {
      if (type === SOURCES || INVENTORIES.has(type)) return false
      const document = JSON.parse(json) as Document
      if (type === CLUSTERS) return matches(id) && !(deleted && isTaken(dnsOf(types.cluster, document)))
      const { role, cluster } = asToken(document)
      return type !== TOKENS || role !== 'cluster' || matches(cluster)
    }),
  )
}

/** A part holds what it is to hold, and knows what it is a part of. */
async function assertPart(source: Store, target: Store, selection: Selection): Promise<void> {
  const held = await documentsOf(target)
  const upstream = held.get(`${SOURCES}/upstream`) as DocumentVersion
  held.delete(`${SOURCES}/upstream`)
  const wanted = await partOf(source, selection)
  const isMade = ({ type, deleted }: DocumentVersion): boolean => type !== TOKENS && !deleted
  const view = (documents: Map<string, DocumentVersion>): object =>
    Object.fromEntries(
      [...documents].sort().map(([key, document]) => {
        const { json, deleted, revision } = document
        // What comes and goes with others is of the revision that did so.
        return [key, { json, deleted, ...(isMade(document) && { revision }) }]
      }),
    )
  assert.deepEqual(view(held), view(wanted))
  const { revision, hash } = await source.head()
  assert.deepEqual(JSON.parse(upstream.json), {
    id: 'upstream',
    selector: selection.selector.text,
    revision,
    hash,
  })
  assert.equal((await target.head()).revision, revision)
}

/** Nothing is removed that was not there, and no revision changes one document twice. */
async function assertNothingTwice(store: Store): Promise<void> {
  for await (const { revision, changes } of store.log(0)) {
    for (const { type, id, before, after } of changes)
      assert.ok(before !== null || after !== null, `revision ${revision} removes no ${type}/${id}`)
    const keys = changes.map(({ type, id }) => `${type}/${id}`)
    assert.equal(new Set(keys).size, keys.length, `revision ${revision} changes ${keys}`)
  }
}

/** Every poll is answered as by the source, or not at all. */
function assertAnswers(source: Engine, target: Engine, { selector }: Selection): void {
  const matches = ({ document }: Entry): boolean => selector.matches(document)
  for (const name of NAMES) {
    const there = source.state.clusterByDns(name)
    const here = target.state.clusterByDns(name)
    const isServed =
      there !== undefined &&
      (there.deleted ? source.state.tombstonesWithDns(name).some(matches) : matches(there))
    assert.equal(here !== undefined, isServed, `${name} is ${isServed ? '' : 'not '}served`)
    if (!here || !there) continue
    for (const type of types.delivered) {
      const wanted = renderInputs(servedTo(types, source.state, there.id), types, type, there)
      const given = renderInputs(servedTo(types, target.state, here.id), types, type, here)
      assert.equal(given.text, wanted.text, `${name}/${type.delivery.endpoint}`)
      assert.deepEqual(given.digest, wanted.digest)
    }
  }
}

const cluster = fc.constantFrom('k0', 'k1', 'k2', 'k3')
const tokenName = fc.constantFrom('t0', 't1', 't2', 'v0')
/** Tokens for one cluster and for all, and clusters that come into a selection and leave it. */
const more: fc.Arbitrary<Command> = fc.oneof(
  fc.tuple(tokenName, cluster).map(([name, id]): Command => {
    const grant = name === 'v0' ? ({ role: 'viewer' } as const) : ({ role: 'cluster', cluster: id } as const)
    const { token } = newToken({ name, grant, expiresAt: undefined, createdBy: 'law' }, NOW)
    return { op: 'create_token', token, path: '' }
  }),
  tokenName.map((name): Command => ({ op: 'revoke_token', id: tokenIdOf(name), name, path: '' })),
  tokenName.map((name): Command => {
    const { kept: secret } = newSecret(NOW)
    const graceEnd = NOW.toISOString()
    return { op: 'rotate_token', id: tokenIdOf(name), name, secret, graceEnd, path: '' }
  }),
  fc.tuple(cluster, fc.constantFrom('dev', 'prod'), fc.constantFrom('1', '2', null)).map(
    ([id, environment, x]): Command => ({
      op: 'patch',
      type: CLUSTERS,
      id,
      patch: { environment, labels: { x } },
      format: 'merge',
      path: '',
    }),
  ),
  fc.tuple(cluster, fc.constantFrom('dev', 'prod'), fc.constantFrom(...NAMES)).map(
    ([id, environment, cluster_dns]): Command => ({
      op: 'create',
      type: CLUSTERS,
      document: { id, cluster_name: id, cluster_dns, environment },
      path: '',
    }),
  ),
  fc.tuple(cluster, fc.constantFrom(...NAMES)).map(
    ([id, cluster_dns]): Command => ({
      op: 'patch',
      type: CLUSTERS,
      id,
      patch: { cluster_dns },
      format: 'merge',
      path: '',
    }),
  ),
  fc
    .tuple(cluster, fc.boolean())
    .map(([id, purge]): Command => ({ op: 'delete', type: CLUSTERS, id, cascade: false, purge, path: '' })),
)
/** What was applied together, of clusters inside a selection and outside. */
const books: fc.Arbitrary<Command> = fc
  .tuple(fc.constantFrom('s0', 's1'), fc.uniqueArray(cluster), fc.boolean())
  .map(([id, clusters, isNew]): Command => {
    const document = { id, documents: { clusters } }
    return isNew
      ? { op: 'create', type: 'applied_sets', document, path: '' }
      : { op: 'delete', type: 'applied_sets', id, cascade: false, purge: false, path: '' }
  })
const writes = fc.array(
  fc.oneof(
    { weight: 3, arbitrary: fc.tuple(fc.oneof(more, command, books)) },
    fc.array(fc.oneof(more, command, books), { minLength: 2, maxLength: 4 }),
  ),
  { minLength: 20, maxLength: 60 },
)
const selection = fc
  .constantFrom(
    'environment=dev',
    'id!=k0',
    'uses.platform_components=a',
    'x=1',
    '!x',
    'id in (k1,k2), environment=prod',
    'id',
    'id=nobody',
  )
  .map(selectionOf)
const RUNS = { numRuns: 60, interruptAfterTimeLimit: 40_000, markInterruptAsFailure: true }

describe('a part of a log', () => {
  test('follows its source revision by revision: what it holds, what polls get, and 404 for all others', async () => {
    await fc.assert(
      fc.asyncProperty(writes, selection, async (sequence, selected) => {
        const [store, target] = [openMemoryStore(), openMemoryStore()]
        const source = await start(store)
        await follow(store, target, { selection: selected })
        const mirror = await load(target)
        for (const commands of sequence) {
          const { revision: since } = source.state
          await source.write(commands, AUTHOR, CONFIRMED)
          if (source.state.revision === since) continue
          await follow(store, target, { since, selection: selected })
          await mirror.catchUp()
          await assertPart(store, target, selected)
          assertAnswers(source, mirror, selected)
        }
        assert.equal((await verifyLog(target)).verified, true)
        await assertNothingTwice(target)
        await source.stop()
        await mirror.stop()
      }),
      RUNS,
    )
  })

  test('is the same however it is cut into pieces', async () => {
    await fc.assert(
      fc.asyncProperty(
        writes,
        selection,
        fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
        async (all, selected, steps) => {
          const store = openMemoryStore()
          const source = await start(store)
          for (const commands of all) await source.write(commands, AUTHOR, CONFIRMED)
          await source.stop()
          const { revision: end } = await store.head()
          const [atOnce, inSteps] = [openMemoryStore(), openMemoryStore()]
          await follow(store, atOnce, { selection: selected })
          for (let since = 0; since < end; ) {
            const until = Math.min(end, since + (steps.next().value as number))
            await follow(store, inSteps, { since, until, selection: selected })
            since = until
          }
          assert.deepEqual(await inSteps.head(), await atOnce.head())
          assert.deepEqual(await documentsOf(inSteps), await documentsOf(atOnce))
          await assertPart(store, atOnce, selected)
        },
      ),
      RUNS,
    )
  })

  test('holds no books, and says of no revision what was asked for: both name clusters of the whole fleet', async () => {
    const [store, target] = [openMemoryStore(), openMemoryStore()]
    const source = await start(store)
    const document = { id: 's', documents: { clusters: ['k0', 'outside'] } }
    for (const type of INVENTORIES)
      assert.ok((await source.write([{ op: 'create', type, document, path: '' }], AUTHOR)).ok)
    await source.stop()
    const lines: string[] = []
    for await (const line of exportLog(store, {
      since: 0,
      now: NOW,
      selection: selectionOf('environment=dev'),
    }))
      lines.push(line)
    assert.ok(INVENTORIES.size > 0 && !lines.join().includes('outside') && !lines.join().includes('create '))
    await pruneTo(store, (await store.head()).revision)
    await follow(store, target, { selection: selectionOf('environment=dev') })
    for (const { type } of (await documentsOf(target)).values()) assert.ok(!INVENTORIES.has(type), type)
  })

  test('has a token for a cluster when it has the cluster, whichever came first', async () => {
    const [source, target] = [openMemoryStore(), openMemoryStore()]
    const selection = selectionOf('environment=dev')
    const token = { id: 't', name: 't', role: 'cluster', cluster: 'k1', secrets: [] }
    const cluster = { id: 'k1', cluster_name: 'k1', cluster_dns: 'k1.example.com', environment: 'dev' }
    const meta = { time: NOW.toISOString(), actor: 'a', message: null, request_id: 'r', client_address: null }
    for (const [base, [type, document]] of [
      [TOKENS, token],
      [CLUSTERS, cluster],
    ].entries() as Iterable<[number, [string, Document]]>) {
      const change = { type, id: document.id, after: { json: JSON.stringify(document), deleted: false } }
      assert.ok((await source.commit(base, { ...meta, operation: 'o', changes: [change] })).ok)
    }
    await follow(source, target, { selection })
    await assertPart(source, target, selection)
    assert.ok((await documentsOf(target)).has(`${TOKENS}/t`))
  })

  test('begins with what its source begins with, and goes on from there', async () => {
    await fc.assert(
      fc.asyncProperty(writes, selection, fc.nat(), async (all, selected, place) => {
        const store = openMemoryStore()
        const source = await start(store)
        for (const commands of all) await source.write(commands, AUTHOR, CONFIRMED)
        await source.stop()
        const { revision: end } = await store.head()
        const cut = 1 + (place % end)
        await pruneTo(store, cut)
        const target = openMemoryStore()
        const half = Math.floor((cut + end) / 2)
        await follow(store, target, { until: half, selection: selected })
        assert.equal((await verifyLog(target)).verified, true)
        await follow(store, target, { since: half, selection: selected })
        await assertPart(store, target, selected)
        assert.equal((await verifyLog(target)).verified, true)
      }),
      RUNS,
    )
  })

  test('of a part is the part that both selectors choose', async () => {
    await fc.assert(
      fc.asyncProperty(writes, selection, selection, async (all, first, second) => {
        const [store, middle, last] = [openMemoryStore(), openMemoryStore(), openMemoryStore()]
        const source = await start(store)
        for (const commands of all) {
          await source.write(commands, AUTHOR, CONFIRMED)
          const since = (await middle.head()).revision
          await follow(store, middle, { since, selection: first })
          await follow(middle, last, { since, selection: second })
          await assertPart(middle, last, second)
        }
        await source.stop()
        await pruneTo(middle, 1)
        const copy = openMemoryStore()
        await follow(middle, copy)
        assert.deepEqual(await documentsOf(copy), await documentsOf(middle))
        assert.deepEqual(await copy.head(), await middle.head())
      }),
      { ...RUNS, numRuns: 30 },
    )
  })
})

describe('a tombstone in a part', () => {
  const create = (id: string, environment: string, cluster_dns = 'k1.example.com'): Command => ({
    op: 'create',
    type: CLUSTERS,
    document: { id, cluster_name: id, cluster_dns, environment },
    path: '',
  })
  const remove = (id: string, purge = false): Command => ({
    op: 'delete',
    type: CLUSTERS,
    id,
    cascade: false,
    purge,
    path: '',
  })

  const rename = (id: string, cluster_dns: string): Command => ({
    op: 'patch',
    type: CLUSTERS,
    id,
    patch: { cluster_dns },
    format: 'merge',
    path: '',
  })

  /** What a part of the dev clusters finds under the name after each write. */
  async function foundAfter(...writes: Command[][]): Promise<(string | undefined)[]> {
    const [store, target] = [openMemoryStore(), openMemoryStore()]
    const source = await start(store)
    const mirror = await load(target)
    const found: (string | undefined)[] = []
    for (const commands of writes) {
      const written = await source.write(commands, AUTHOR, CONFIRMED)
      assert.ok(written.ok, JSON.stringify(written))
      const since = (await target.head()).revision
      await follow(store, target, { since, selection: selectionOf('environment=dev') })
      await mirror.catchUp()
      const entry = mirror.state.clusterByDns('k1.example.com')
      found.push(entry && `${entry.id}${entry.deleted ? ' deleted' : ''}`)
    }
    await source.stop()
    await mirror.stop()
    return found
  }

  test('makes room for a live cluster elsewhere that took its name, and comes back after it', async () => {
    assert.deepEqual(
      await foundAfter(
        [create('k1', 'dev')],
        [remove('k1')],
        [create('k2', 'prod')],
        [remove('k2')],
        [remove('k2', true)],
      ),
      ['k1', 'k1 deleted', undefined, 'k1 deleted', 'k1 deleted'],
    )
  })

  test('makes room for one that takes its name in the same write, or by another name of its own', async () => {
    assert.deepEqual(await foundAfter([create('k1', 'dev')], [remove('k1'), create('k2', 'prod')]), [
      'k1',
      undefined,
    ])
    assert.deepEqual(
      await foundAfter(
        [create('k1', 'dev')],
        [remove('k1')],
        [create('k2', 'prod', 'k2.example.com')],
        [rename('k2', 'K1.example.com')],
        [rename('k2', 'k2.example.com')],
      ),
      ['k1', 'k1 deleted', 'k1 deleted', undefined, 'k1 deleted'],
    )
  })
})

describe('a part and a whole', () => {
  async function fleet(): Promise<Store> {
    const store = openMemoryStore()
    const source = await start(store)
    for (const id of ['k1', 'k2'])
      await source.write(
        [
          {
            op: 'create',
            type: CLUSTERS,
            document: { id, cluster_name: id, cluster_dns: `${id}.example.com`, environment: 'dev' },
            path: '',
          },
        ],
        AUTHOR,
      )
    await source.stop()
    return store
  }
  const dev = selectionOf('environment=dev')

  async function assertRefused(moving: Promise<Imported>, target: Store, pattern: RegExp): Promise<void> {
    const before = [await target.head(), await documentsOf(target)]
    await assert.rejects(moving, (error) => {
      return error instanceof StreamError && !error.isDamaged && pattern.test(error.message)
    })
    assert.deepEqual([await target.head(), await documentsOf(target)], before)
  }

  test('do not go into one another', async () => {
    const store = await fleet()
    const [whole, part] = [openMemoryStore(), openMemoryStore()]
    await follow(store, whole, { until: 2 })
    await follow(store, part, { until: 2, selection: dev })
    for (const since of [0, 2]) {
      await assertRefused(follow(store, whole, { since, selection: dev }), whole, /holds a whole log/)
      await assertRefused(follow(store, part, { since }), part, /another history: .* "environment=dev"/)
    }
  })

  test('of another selection, another history or an older time do not go on', async () => {
    const store = await fleet()
    const part = openMemoryStore()
    await follow(store, part, { until: 2, selection: dev })
    const others = selectionOf('environment=prod')
    await assertRefused(
      follow(store, part, { since: 2, selection: others }),
      part,
      /"environment=prod".*"environment=dev"/,
    )
    await assertRefused(follow(store, part, { until: 1, selection: dev }), part, /older than what is here/)
    await assertRefused(
      follow(store, part, { since: 3, selection: dev }),
      part,
      /starts at revision 3, this store is at 2/,
    )
    const parted = openMemoryStore()
    await follow(store, parted, { until: 1 })
    const engine = await load(parted)
    for (const id of ['n5', 'n6', 'n7'])
      await engine.write([{ op: 'create', type: 'namespaces', document: { id }, path: '' }], AUTHOR)
    await engine.stop()
    for (const since of [0, 2])
      await assertRefused(follow(parted, part, { since, selection: dev }), part, /another history/)
    await follow(store, part, { since: 0, selection: dev })
    assert.equal((await part.head()).revision, 3)
  })

  test('of a part whose log was cut begins with its own source alone', async () => {
    const store = await fleet()
    const [middle, last] = [openMemoryStore(), openMemoryStore()]
    await follow(store, middle, { selection: dev })
    await pruneTo(middle, 2)
    const { initialDocuments } = await follow(middle, last, { selection: dev })
    assert.equal(initialDocuments, (await documentsOf(last)).size - 1, 'but for the cluster of revision 3')
    await assertPart(middle, last, dev)
  })

  test('that was written to by itself does not go on', async () => {
    const store = await fleet()
    const part = openMemoryStore()
    await follow(store, part, { until: 2, selection: dev })
    const engine = await load(part)
    await engine.write([{ op: 'create', type: 'namespaces', document: { id: 'mine' }, path: '' }], AUTHOR)
    await engine.stop()
    await assertRefused(
      follow(store, part, { since: 2, selection: dev }),
      part,
      /went its own way after revision 2/,
    )
  })

  test('share every revision: its number, its time, who and why', async () => {
    const store = await fleet()
    const part = openMemoryStore()
    await follow(store, part, { selection: selectionOf('id=nobody') })
    const told = async (of: Store) =>
      (await of.history({ limit: 100, changeLimit: 0 })).map(
        ({ hash: _, change_count: __, operation: ___, ...meta }) => meta,
      )
    assert.deepEqual(await told(part), await told(store))
  })
})
