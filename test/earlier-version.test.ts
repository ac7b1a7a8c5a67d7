import assert from 'node:assert/strict'
import { copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { openSnapshots } from '../src/engine/snapshot.ts'
import { openSqliteStore } from '../src/store/sqlite/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { importLog } from '../src/transfer/import-log.ts'
import { openLines } from '../src/transfer/transfer-files.ts'
import { verifyLog } from '../src/transfer/verify-log.ts'
import { STORES, start } from './every-store.ts'
import { builtInTypes, READ_TOKEN, type TestService, temporaryFolder } from './service.ts'
import { withoutDigests } from './without-digests.ts'

/** A database, a backup and a snapshot that schema version 4 wrote, and what its service answered. */
const FIXTURE = join(import.meta.dirname, 'fixtures/earlier-version')

interface Recorded {
  /** When it was recorded: idempotency records were still valid then. */
  readonly time: string
  readonly head: { readonly revision: number; readonly hash: string }
  readonly secrets: Readonly<Record<string, string>>
  readonly idempotent: readonly {
    readonly method: string
    readonly path: string
    readonly key: string
    readonly body: { readonly labels: { readonly region: string } }
    readonly status: number
    readonly answer: string
    readonly revision: string
  }[]
  readonly reads: readonly {
    readonly path: string
    readonly status: number
    readonly revision?: string
    readonly etag?: string
    readonly total?: string
    readonly text?: string
    readonly error?: string
  }[]
}

const recorded: Recorded = JSON.parse(readFileSync(join(FIXTURE, 'recorded.json'), 'utf8'))
const now = (): Date => new Date(recorded.time)

/** The database of the earlier version, in a folder of its own. */
function openEarlier(t: TestContext, write: boolean): Store {
  const path = join(temporaryFolder(t), 'fleet.db')
  copyFileSync(join(FIXTURE, 'fleet.db'), path)
  return openSqliteStore({ path, write })
}

async function assertServesTheSame(service: TestService): Promise<void> {
  for (const { path, status, revision, etag, total, text, error } of recorded.reads) {
    const isPoll = path.startsWith('/api/v2/flux/')
    const answer = await service.call('GET', path, isPoll ? { token: READ_TOKEN } : {})
    assert.equal(answer.status, status, path)
    assert.equal(answer.headers['x-revision'], revision, path)
    if (text === undefined) assert.equal(answer.body.error, error, path)
    else assert.equal(asThen(path, answer.text), text, path)
    // Inputs have got digests since, so the answers that have inputs have other ETags too.
    const isLater = answer.text !== text
    if (etag !== undefined && !isLater) assert.equal(answer.headers.etag, etag, path)
    if (total !== undefined) assert.equal(answer.headers['x-total-count'], total, path)
  }
}

/** An answer without what has been added since: digests of inputs, and how many secrets of a token are valid. */
function asThen(path: string, text: string): string {
  const isOfTokens = /^\/tokens\b/.test(path)
  return withoutDigests(isOfTokens ? text.replaceAll(/,"valid_secrets":\d+(?=\})/g, '') : text)
}

async function assertTokensWork(service: TestService): Promise<void> {
  const { 'cluster-early': cluster, watcher, revoked } = recorded.secrets as Record<string, string>
  const early = '/api/v2/flux/clusters/early.k8s.example.com/namespaces'
  const other = '/api/v2/flux/clusters/dev-us-01.k8s.example.com/namespaces'
  assert.equal((await service.call('GET', early, { token: cluster as string })).status, 200)
  assert.equal((await service.call('GET', other, { token: cluster as string })).status, 403)
  assert.equal((await service.call('GET', '/clusters', { token: watcher as string })).status, 200)
  assert.equal((await service.call('GET', '/clusters', { token: revoked as string })).status, 401)
}

async function assertReplays(service: TestService): Promise<void> {
  for (const { method, path, key, body, status, answer, revision } of recorded.idempotent) {
    const again = await service.call(method, path, { body, headers: { 'idempotency-key': key } })
    assert.equal(again.status, status, again.text)
    assert.equal(again.text, answer)
    assert.equal(again.headers['x-revision'], revision)
    assert.equal(again.headers['idempotent-replayed'], 'true')
  }
}

/** Nothing was noted of clusters then: their status begins with their next poll. */
async function assertStatusBegins(service: TestService): Promise<void> {
  await service.engine.fleet.loaded
  const contacts = async () => {
    await service.engine.fleet.sync()
    const { status, body, text } = await service.call('GET', '/status', { token: READ_TOKEN })
    assert.equal(status, 200, text)
    return [body.total > 1, body.counts.contact.never === body.total, body.counts.contact.current]
  }
  assert.deepEqual(await contacts(), [true, true, 0])
  const early = '/api/v2/flux/clusters/early.k8s.example.com/namespaces'
  assert.equal((await service.call('GET', early, { token: READ_TOKEN })).status, 200)
  assert.deepEqual(await contacts(), [true, false, 1])
  assert.equal(service.engine.fleet.pendingNotes, 0)
}

/** What is written now goes on from the history that is there. */
async function assertGoesOn(service: TestService, store: Store): Promise<void> {
  const answer = await service.call('PATCH', '/clusters/early', { body: { node_count: 12 } })
  assert.equal(answer.headers['x-revision'], String(recorded.head.revision + 1), answer.text)
  const { verified, problems } = await verifyLog(store)
  assert.deepEqual({ verified, problems }, { verified: true, problems: [] })
}

suite('a database of an earlier version opens and serves the same bytes, but for what was added since', () => {
  test('polls, documents, revisions, tokens with their last use, and idempotency keys', async (t) => {
    const store = openEarlier(t, true)
    const { revision, hash } = await store.head()
    assert.deepEqual({ revision, hash }, recorded.head)
    const service = await start(t, { store, now })
    await assertServesTheSame(service)
    await assertTokensWork(service)
    await assertReplays(service)
    await assertGoesOn(service, store)
  })

  test('also in a process that only reads', async (t) => {
    const store = openEarlier(t, false)
    await assertServesTheSame(await start(t, { store, now }))
  })

  for (const write of [true, false])
    test(`the status of its clusters is empty at first in a process that ${write ? 'writes' : 'only reads'}`, async (t) => {
      const failures: string[] = []
      const onStoreError = ({ message }: Error) => failures.push(message)
      await assertStatusBegins(await start(t, { store: openEarlier(t, write), now, onStoreError }))
      assert.deepEqual(failures, [])
    })
})

suite('a backup of an earlier version restores', () => {
  for (const [name, open] of Object.entries(STORES)) {
    test(`into ${name}`, async (t) => {
      const store = await open(t)
      const file = await openLines(join(FIXTURE, 'backup.gz'))
      t.after(() => file.close())
      const { head, initialDocuments, answers, uses } = await importLog(store, file.lines())
      assert.deepEqual({ head, answers, uses }, { head: recorded.head, answers: 2, uses: 2 })
      assert.ok(initialDocuments > 0)
      const service = await start(t, { store, now })
      await assertServesTheSame(service)
      await assertTokensWork(service)
      await assertReplays(service)
      await assertGoesOn(service, store)
    })
  }
})

test('a snapshot of an earlier version is read', async (t) => {
  const folder = temporaryFolder(t)
  copyFileSync(join(FIXTURE, 'state.snapshot'), join(folder, 'state.snapshot'))
  const saved = await openSnapshots(folder).read(builtInTypes())
  assert.deepEqual(saved?.head, recorded.head)
  const clusters = recorded.reads.find(({ path }) => path === '/clusters')?.text
  const documents = JSON.parse(clusters as string).map(({ id }: { id: string }) => id)
  assert.deepEqual(
    documents.filter((id: string) => !saved?.state.get('clusters', id)),
    [],
  )
  assert.equal(saved?.state.get('clusters', 'early')?.document.node_count, 2)
})
