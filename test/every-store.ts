// What tests of the service share that run over every store.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { openMemoryStore } from '../src/store/memory.ts'
import { openSqliteStore } from '../src/store/sqlite.ts'
import type { Store } from '../src/store/store.ts'
import {
  type Answer,
  type ServiceOptions,
  startService,
  type TestService,
  temporaryFolder,
} from './service.ts'

export const STORES: Record<string, (t: TestContext) => Store> = {
  memory: () => openMemoryStore(),
  SQLite: (t) => openSqliteStore({ path: join(temporaryFolder(t), 'fleet.db'), write: true }),
}

/** A service that is stopped after the test. */
export async function start(t: TestContext, options: ServiceOptions = {}): Promise<TestService> {
  const service = await startService(options)
  t.after(() => service.stop())
  return service
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
