// What tests of the service share that run over every store.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { openPostgresStore } from '../src/store/postgres/postgres.ts'
import { openSqliteStore, type SqliteOptions } from '../src/store/sqlite/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import { temporaryPostgres } from './postgres-server.ts'
import {
  type Answer,
  type ServiceOptions,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

export const STORES: Record<string, (t: TestContext) => Promise<Store>> = {
  memory: async () => openMemoryStore(),
  SQLite: async (t) => openSqliteStore({ path: join(temporaryFolder(t), 'fleet.db'), write: true }),
  PostgreSQL: async (t) => openPostgresStore({ url: await temporaryPostgres(t), write: true }),
}

/** A service that is stopped after the test. */
export async function start(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  const service = await startService(options)
  t.after(() => service.stop())
  return service
}

export type Write = readonly [method: string, url: string, body?: Json]

/** Runs writes that must succeed; answers the revision of the last one. */
export async function run(service: TestService, ...writes: Write[]): Promise<number> {
  let revision = 0
  for (const [method, url, body] of writes) {
    const answer = await service.call(method, url, { body })
    assert.ok(answer.status < 300, `${method} ${url}: ${answer.text}`)
    revision = Number(answer.headers['x-revision'])
  }
  return revision
}

/** A file of its own for the test; everything opened through it is closed before the folder goes. */
export function temporaryDatabase(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-store-'))
  const stores: Store[] = []
  t.after(async () => {
    for (const store of stores) await store.close().catch(() => {})
    rmSync(folder, { recursive: true, force: true })
  })
  const path = join(folder, 'fleet.db')
  function open(options: Partial<SqliteOptions> = {}): Store {
    const store = openSqliteStore({ path, write: true, ...options })
    stores.push(store)
    return store
  }
  return { folder, path, open }
}

/** What a revision changed, as `op type/id`. */
export async function changesOf(service: TestService, revision: number): Promise<string[]> {
  const { body } = await service.call('GET', `/revisions/${revision}`)
  return body.changes
    .map(({ op, type, id }: { op: string; type: string; id: string }) => `${op} ${type}/${id}`)
    .toSorted()
}

export function assertProblem(answer: Answer, status: number, error: string): void {
  assert.equal(answer.status, status, answer.text)
  assert.equal(answer.body.error, error)
}

/** The places that a problem names. */
export function pathsIn({ body }: Answer): string[] {
  return body.details.map(({ path }: { path: string }) => path)
}
