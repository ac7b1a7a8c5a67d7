import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Writable } from 'node:stream'
import { describe, test } from 'node:test'
import pino from 'pino'
import type { Json } from '../src/base/json.ts'
import { newSecret } from '../src/engine/token-secret.ts'
import { assertProblem, start } from './every-store.ts'
import { type Answer, type Call, MAIN, spawnService, temporaryFolder } from './service.ts'

const SEED_FILE = join(import.meta.dirname, '../data/seed.json')
const DEMO = '/api/v2/flux/clusters/demo-cluster-01.k8s.example.com'
const JWT_LIKE = [
  Buffer.from('{"alg":"RS256"}'),
  Buffer.from('{"sub":"somebody"}'),
  Buffer.from('a signature that nobody made'),
]
  .map((part) => part.toString('base64url'))
  .join('.')

const sha256 = (text: string) => createHash('sha256').update(text).digest()
const basic = (token: string): Call => ({
  token: null,
  headers: { authorization: `Basic ${Buffer.from(`flux:${token}`).toString('base64')}` },
})

/** A secret in all the ways in which somebody may have written it down. */
function writings(secret: string): Map<string, string> {
  const bytes = Buffer.from(secret)
  const unpadded = (text: string) => text.replace(/=+$/, '')
  return new Map([
    ['as it is', secret],
    ['its end', secret.slice(-20)],
    ['in base64', unpadded(bytes.toString('base64'))],
    ['in base64url', bytes.toString('base64url')],
    ['as a password of Basic', unpadded(Buffer.from(`flux:${secret}`).toString('base64'))],
    ['in hex', bytes.toString('hex')],
    ['percent-encoded', encodeURIComponent(secret)],
  ])
}

/** Its digests: only the store may know them. */
function digests(secret: string): Map<string, string> {
  const digest = sha256(secret)
  return new Map([
    ['its SHA-256', digest.toString('hex')],
    ['its SHA-256 in base64', digest.toString('base64').replace(/=+$/, '')],
    ['its SHA-256 in base64url', digest.toString('base64url')],
  ])
}

function assertHidden(where: string, text: string, secrets: ReadonlyMap<string, string>): void {
  for (const [whose, secret] of secrets) {
    for (const [how, written] of [...writings(secret), ...digests(secret)]) {
      const at = text.indexOf(written)
      const found = at < 0 ? '' : text.slice(Math.max(0, at - 150), at + 150)
      assert.ok(at < 0, `${whose}, ${how}, is in ${where}: …${found}…`)
    }
  }
}

describe('the secrets of a service that tells everything it does', () => {
  test('are nowhere but in the answers that give them out; the store knows digests of named ones alone', async (t) => {
    const path = join(temporaryFolder(t), 'fleet.db')
    const secrets = new Map([
      ['the read token', 'read-Vw8kZ3nQ5tYx1LmB7cRd'],
      ['the second read token', 'read-2-Jh4sGf6dKa9pWqEz0Xv'],
      ['the write token', 'write-Tn5bMc2vXz8lKj3hGf'],
    ])
    const [read = '', read2 = '', write = ''] = secrets.values()
    const env = {
      DATABASE_URL: `sqlite://${path}`,
      SEED_FILE,
      API_MODE: 'crud',
      LOG_LEVEL: 'trace',
      AUTH_TOKEN: `${read},${read2}`,
      CRUD_AUTH_TOKEN: write,
      MAX_AUTH_FAILURES: '40',
    }
    const service = await spawnService(env)
    t.after(() => service.stop('SIGKILL'))

    /** Every answer is kept; what gives out a secret is searched without it. */
    const answers: { what: string; text: string }[] = []
    const statuses = new Set<number>()
    async function call(
      method: string,
      url: string,
      options: Call & { gives?: string } = {},
    ): Promise<Answer> {
      const { gives, ...rest } = options
      const answer = await service.call(method, url, { token: write, ...rest })
      statuses.add(answer.status)
      let text = `${JSON.stringify(answer.headers)}\n${answer.text}`
      if (gives !== undefined) {
        assert.equal(typeof answer.body.secret, 'string', answer.text)
        secrets.set(gives, answer.body.secret)
        text = text.replace(`"secret":"${answer.body.secret}"`, '')
      }
      answers.push({ what: `${method} ${url.split('?')[0]} (${answer.status})`, text })
      return answer
    }
    const create = (name: string, gives: string, more: Record<string, Json> = {}, headers = {}) =>
      call('POST', '/tokens', { body: { name, role: 'viewer', ...more }, headers, gives })

    // Named tokens in all their states, and repetitions.
    const key = { 'Idempotency-Key': 'once' }
    await create('ci', 'the secret of ci', {}, key)
    const first = secrets.get('the secret of ci') as string
    await call('POST', '/tokens', { body: { name: 'ci', role: 'viewer' }, headers: key })
    const again = { headers: { 'Idempotency-Key': 'again' }, body: { grace: '1h' } }
    await call('POST', '/tokens/ci/rotate', { ...again, gives: 'the rotated secret of ci' })
    await call('POST', '/tokens/ci/rotate', again)
    const second = secrets.get('the rotated secret of ci') as string
    await create('gone', 'the secret of one that was revoked', { role: 'admin' })
    await create('editor', 'the secret of an editor', { role: 'editor', selector: 'environment=dev' })
    await create('one', 'the secret of a cluster', { role: 'cluster', cluster: 'demo-cluster-01' })
    const gone = secrets.get('the secret of one that was revoked') as string
    const editor = secrets.get('the secret of an editor') as string
    const cluster = secrets.get('the secret of a cluster') as string
    await call('DELETE', '/tokens/gone', { token: gone })

    // One that a command has made on the store, which prints it and nothing else.
    const command = [MAIN, 'token', 'create', 'ops', '--role', 'admin']
    const child = spawn(process.execPath, command, { env, timeout: 30_000 })
    const commandLine = readFileSync(`/proc/${child.pid}/cmdline`, 'latin1')
    const [stdout, stderr] = [child.stdout.toArray(), child.stderr.toArray()]
    await once(child, 'close')
    const [made, errors] = [Buffer.concat(await stdout), Buffer.concat(await stderr)].map(String)
    assert.match(made ?? '', /^frs_[0-9A-Za-z]{49}\n$/)
    secrets.set('the secret of a command', made?.trimEnd() ?? '')
    assertHidden('the process list of the command', commandLine, secrets)
    assertHidden('the errors of the command', errors ?? '', secrets)

    // Those that are no tokens, or no longer.
    const wrong = new Map([
      ['a token that is no token', 'guess-Pz7rYt4wUi9oLk2jHn'],
      ['one of ours that nobody made', newSecret(new Date()).secret],
      ['one of ours with a typing mistake', `${first.slice(0, -1)}${first.endsWith('a') ? 'b' : 'a'}`],
      ['one that looks like a JWT', JWT_LIKE],
      ['one with odd characters', `odd"<>'\\%s$\{jndi:x}${'Qm3x'.repeat(6)}`],
    ])
    for (const [name, token] of wrong) secrets.set(name, token)

    const all = [...secrets.values()]
    for (const token of all) {
      for (const url of ['/whoami', '/clusters', '/tokens', `${DEMO}/namespaces`])
        await call('GET', url, { token })
      await call('GET', `${DEMO}/rolebindings`, basic(token))
      // By mistake in the query, where everybody logs it.
      const query = encodeURIComponent(token)
      await call('GET', `${DEMO}/namespaces?access_token=${query}`, { token: null })
      await call('GET', `/clusters?access_token=${query}`)
      await call('GET', `/clusters?access_token=${query}`, { token: null })
      await call('GET', `/nothing/here?token=${query}`)
      await call('POST', `/tokens?secret=${query}`, { body: { name: 'x', role: 'viewer' } })
    }
    for (const authorization of [`Token ${second}`, `Digest ${second}`, second, `Basic ${second}`]) {
      await call('GET', '/whoami', { token: null, headers: { authorization } })
      await call('GET', `${DEMO}/namespaces`, { token: null, headers: { authorization } })
    }
    // 403, 404, 405, 409, 412, 413, 415, 422, and what is previewed.
    const patch = { labels: { by: 'editor' } }
    await call('PATCH', '/clusters/demo-cluster-01', { token: editor, body: patch })
    await call('DELETE', '/clusters/demo-cluster-01?purge=true', { token: editor })
    await call('GET', '/api/v2/flux/clusters', { token: cluster })
    await call('GET', '/clusters/nobody', { token: second })
    await call('PUT', '/tokens/ci', { body: {} })
    await call('POST', '/tokens', { body: { name: 'ci', role: 'viewer' } })
    await call('POST', '/tokens', { body: { name: 'other', role: 'viewer' }, headers: key })
    await call('POST', '/tokens', { raw: 'name=x', headers: { 'content-type': 'text/plain' } })
    await call('POST', '/tokens', { raw: '{"name":' })
    await call('PATCH', '/clusters/demo-cluster-01', { body: patch, headers: { 'If-Match': '"1"' } })
    await call('POST', '/tokens?dry_run=true', { body: { name: 'previewed', role: 'admin' } })
    await call('POST', '/tokens/ci/rotate?dry_run=true')
    await call('DELETE', '/tokens/ci?dry_run=true')
    for (let revision = 1; revision <= 9; revision++) {
      await call('GET', `/revisions/${revision}`)
      await call('POST', `/revisions/${revision}/revert?dry_run=true`)
    }
    const lines = { headers: { accept: 'application/x-ndjson' } }
    for (const url of ['/revisions', '/revisions?type=tokens', '/revisions?actor=ci', '/revisions/2']) {
      await call('GET', url)
      await call('GET', url, lines)
    }
    for (const url of ['/tokens', '/tokens/ci', '/metrics', '/openapi.json', '/ready', '/revisions/verify'])
      await call('GET', url)
    // 503: a store that has lost something.
    const db = new DatabaseSync(path)
    t.after(() => db.isOpen && db.close())
    db.exec('ALTER TABLE token_uses RENAME TO away')
    assert.equal((await call('GET', '/tokens')).status, 503)
    assert.equal((await call('GET', '/tokens/ci')).status, 503)
    db.exec('ALTER TABLE away RENAME TO token_uses')
    // 429 at last.
    for (let i = 0; i < 60; i++)
      await call('GET', '/whoami', { token: wrong.get('a token that is no token') ?? '' })
    for (const status of [200, 201, 400, 401, 403, 404, 405, 409, 412, 415, 422, 429, 503])
      assert.ok(statuses.has(status), `there was a ${status}`)

    for (const { what, text } of answers) assertHidden(`the answer to ${what}`, text, secrets)

    assertHidden('the process list', readFileSync(`/proc/${service.child.pid}/cmdline`, 'latin1'), secrets)

    const kept = db.prepare('SELECT key, fingerprint, answer FROM answers').all()
    assert.ok(kept.length >= 2, 'answers were kept')
    assertHidden('the answers that are kept', JSON.stringify(kept), secrets)

    const named = [
      ...['the secret of ci', 'the rotated secret of ci', 'the secret of an editor'],
      ...['the secret of a cluster', 'the secret of a command'],
    ]
    function searchFiles(when: string): void {
      const names = [path, `${path}-wal`, `${path}-shm`].filter((file) => existsSync(file))
      const bytes = Buffer.concat(names.map((file) => readFileSync(file)))
      for (const [whose, secret] of secrets) {
        for (const [how, written] of writings(secret))
          assert.ok(!bytes.includes(written), `${whose}, ${how}, is in the database ${when}`)
        const [[, hex]] = digests(secret) as unknown as [[string, string]]
        if (named.includes(whose))
          assert.ok(bytes.includes(hex), `the search works: a digest of ${whose} is there`)
        else if (!whose.includes('revoked'))
          assert.ok(!bytes.includes(hex), `a digest of ${whose} is in the database ${when}`)
      }
    }
    searchFiles('while it is in use')
    db.close()
    assert.equal(await service.stop(), 0)
    searchFiles('after the end')

    const output = service.output()
    for (const said of [
      'authentication failed',
      '"path":"/tokens"',
      'the store failed',
      '"actor":"ci"',
      'stopped',
    ])
      assert.ok(output.includes(said), `it has logged ${said}`)
    assertHidden('the log', output, secrets)
  })
})

/** A log that can be read. */
function readableLog() {
  let text = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      text += chunk
      done()
    },
  })
  return { log: pino({ level: 'trace' }, stream), text: () => text }
}

describe('what goes wrong inside', () => {
  const broken = () => {
    throw new Error('something is broken')
  }
  const SECRET = newSecret(new Date()).secret
  const secrets = new Map([['the token', SECRET]])

  test('leaves no token of a query string in the log, of a poll', async (t) => {
    const { log, text } = readableLog()
    const service = await start(t, { log, auth: { shared: broken } })
    const url = `${DEMO}/namespaces?access_token=${SECRET}`
    const answer = await service.call('GET', url, { token: SECRET })
    assertProblem(answer, 500, 'internal_error')
    assert.match(text(), /poll failed/)
    assertHidden('the answer', answer.text, secrets)
    assertHidden('the log', text(), secrets)
  })

  test('leaves no token in the log, of any other request', async (t) => {
    const { log, text } = readableLog()
    const service = await start(t, { log, auth: { shared: broken } })
    for (const call of [{ token: SECRET }, basic(SECRET)]) {
      const answer = await service.call('GET', `/clusters?access_token=${SECRET}`, call)
      assertProblem(answer, 500, 'internal_error')
      assertHidden('the answer', answer.text, secrets)
    }
    assert.match(text(), /request failed/)
    assertHidden('the log', text(), secrets)
  })
})

describe('a token in the wrong place', () => {
  const SECRET = newSecret(new Date()).secret
  const secrets = new Map([['the token', SECRET]])

  test('of a URL that cannot be read is not sent back', async (t) => {
    const { log, text } = readableLog()
    const service = await start(t, { log })
    for (const url of [`/%zz?access_token=${SECRET}`, `/tokens/${'a'.repeat(301)}?access_token=${SECRET}`]) {
      const answer = await service.call('GET', url)
      assert.equal(answer.status, 400)
      assertHidden(`the answer to ${url.slice(0, 12)}`, answer.text, secrets)
    }
    assertHidden('the log', text(), secrets)
  })

  test('of a path is not logged: revoking a token by the token itself is a mistake that people make', async (t) => {
    const { log, text } = readableLog()
    const service = await start(t, { log })
    for (const [method, url] of [
      ['DELETE', `/tokens/${SECRET}`],
      ['GET', `/tokens/${SECRET}`],
      ['POST', `/tokens/${SECRET}/rotate`],
    ] as const) {
      assertProblem(await service.call(method, url), 404, 'not_found')
    }
    assertHidden('the log', text(), secrets)
  })
})
