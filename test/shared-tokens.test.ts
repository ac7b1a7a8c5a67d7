// What the tokens of the environment may do, in every mode and with every way to give them.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Config, MODES, parseConfig } from '../src/config/config.ts'
import type { Role } from '../src/domain/access/grant.ts'
import { may } from '../src/domain/access/permissions.ts'
import { readSharedTokens } from '../src/http/auth/shared-tokens.ts'
import { start } from './every-store.ts'
import { type TestService, temporaryFolder } from './service.ts'

const READ = 'the-token-of-all-clusters'
const WRITE = 'the-token-of-writers'

/** A mirror is a process of its own kind beside the modes. */
const PROCESSES: Record<string, Record<string, string>> = {
  ...Object.fromEntries(MODES.map((API_MODE) => [API_MODE, { API_MODE }])),
  mirror: {
    UPSTREAM_URL: 'https://fleet.example.com',
    UPSTREAM_TOKEN: 'the-token-for-upstream',
    DATABASE_URL: 'sqlite:///var/lib/mirror.db',
  },
}

/** What is given to each, and whether that names a writer. */
const SETTINGS: Record<string, { readonly names: readonly string[]; readonly writer: boolean }> = {
  'AUTH_TOKEN alone': { names: ['AUTH_TOKEN'], writer: false },
  'AUTH_TOKEN_FILE alone': { names: ['AUTH_TOKEN_FILE'], writer: false },
  'both tokens': { names: ['AUTH_TOKEN', 'CRUD_AUTH_TOKEN'], writer: true },
  'both files': { names: ['AUTH_TOKEN_FILE', 'CRUD_AUTH_TOKEN_FILE'], writer: true },
  'a token and a file': { names: ['AUTH_TOKEN', 'CRUD_AUTH_TOKEN_FILE'], writer: true },
  'a file and a token': { names: ['AUTH_TOKEN_FILE', 'CRUD_AUTH_TOKEN'], writer: true },
}

function environment(t: TestContext, names: readonly string[]): Record<string, string> {
  const folder = temporaryFolder(t)
  return Object.fromEntries(
    names.map((name) => {
      const token = name.startsWith('CRUD') ? WRITE : READ
      if (!name.endsWith('_FILE')) return [name, token]
      writeFileSync(join(folder, name), token)
      return [name, join(folder, name)]
    }),
  )
}

async function startWith(t: TestContext, { mode, readTokens, writeTokens }: Config): Promise<TestService> {
  const shared = readSharedTokens(readTokens, writeTokens)
  assert.ok(shared.ok)
  return start(t, { mode, auth: { shared: () => shared.value.tokens } })
}

/** What a token is for, seen from outside. */
async function assertRole(service: TestService, token: string, role: Role, isCrud: boolean): Promise<void> {
  const { body, status } = await service.call('GET', '/whoami', { token })
  assert.equal(status, 200, token)
  assert.equal(body.role, role)
  const grant = { role }
  const log = await service.call('GET', '/log?since=0', { token })
  assert.equal(log.status, may(grant, 'mirror') ? 200 : 403, 'the log as it is stored')
  if (!isCrud) return
  const tokens = await service.call('GET', '/tokens', { token })
  assert.equal(tokens.status, may(grant, 'admin') ? 200 : 403, 'tokens')
  const write = await service.call('PATCH', '/clusters/one', { token, body: { labels: { a: role } } })
  assert.equal(write.status, may(grant, 'write') ? 200 : 403, 'a write')
}

for (const [process, own] of Object.entries(PROCESSES))
  for (const [setting, { names, writer }] of Object.entries(SETTINGS))
    test(`${process} with ${setting}: who reads is a viewer unless the token is the only one of a service that is written to`, async (t) => {
      const parsed = parseConfig({ ...own, ...environment(t, names) })
      assert.ok(parsed.ok, JSON.stringify(parsed))
      const service = await startWith(t, parsed.config)
      const isCrud = parsed.config.mode === 'crud'
      await assertRole(service, READ, isCrud && !writer ? 'admin' : 'viewer', isCrud)
      if (writer) await assertRole(service, WRITE, 'admin', isCrud)
      else assert.equal((await service.call('GET', '/whoami', { token: WRITE })).status, 401)
    })
