// `token` on the command line: secrets that are shown once, lists, rotation, revocation, and who somebody is.
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import { parse } from 'yaml'
import { type CliOptions, cli, onTerminal, outcomesOf, type Run } from './cli-process.ts'
import { start } from './every-store.ts'
import { serve, standBefore } from './own-server.ts'
import { type Answer, READ_TOKEN, startService, type TestService, WRITE_TOKEN } from './service.ts'

const SECRET = /frs_[0-9A-Za-z]{49}/
const ONLY_SECRET = /^frs_[0-9A-Za-z]{49}\n$/
/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 3 }
const DAY_MS = 86_400_000

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service.stop())

/** Runs the program; secrets are on its stdout or nowhere. */
async function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const ran = await cli(['token', ...args], { url: service.url, ...options })
  for (const text of [ran.stdout, ran.stderr]) {
    assert.ok(![READ_TOKEN, WRITE_TOKEN].some((token) => text.includes(token)))
    assert.doesNotMatch(text, /^ {4}at /m)
  }
  assert.doesNotMatch(ran.stderr, SECRET)
  return ran
}

const { succeed, fail } = outcomesOf(run)

function whoami(token: string, of = service): Promise<Answer> {
  return of.call('GET', '/whoami', { token: token.trim() })
}

/** A token that is there before the test, made over HTTP; answers its secret. */
async function made(body: Record<string, string | string[]>, of = service): Promise<string> {
  const answer = await of.call('POST', '/tokens', { body: { role: 'viewer', ...body } })
  assert.equal(answer.status, 201, answer.text)
  return answer.body.secret
}

async function held(name: string, of = service) {
  return (await of.call('GET', `/tokens/${name}`)).body
}

/** A service whose answer to the first of these requests gets lost. */
async function losing(t: TestContext, method: string, url: string): Promise<CliOptions> {
  let isLost = false
  const front = await standBefore(t, service, {
    after: (request) => {
      if (isLost || request.method !== method || request.url !== url) return
      isLost = true
      throw new Error('lost')
    },
  })
  return { url: front.url }
}

describe('token create', AT_ONCE, () => {
  test('puts the secret on stdout and nothing else, and what it is for on stderr', async () => {
    const { stdout, stderr } = await succeed(['create', 'ci', '--role', 'viewer', '-m', 'for the pipeline'])
    assert.match(stdout, ONLY_SECRET)
    const { id } = await held('ci')
    assert.equal(
      stderr,
      `token "ci" (${id}) created: role viewer, never expires\nits secret is shown this once\n`,
    )
    assert.deepEqual((await whoami(stdout)).body, { name: 'ci', via: 'token', role: 'viewer' })
    const [revision] = (await service.call('GET', '/revisions?type=tokens&q=pipeline')).body
    assert.deepEqual([revision.actor, revision.message], ['writer', 'for the pipeline'])
    const quiet = await succeed(['create', 'quiet', '--role', 'poller', '-q'])
    assert.match(quiet.stdout, ONLY_SECRET)
    assert.equal(quiet.stderr, '')
  })

  test('takes a scope, with types by any of their names', async () => {
    const scope = [
      '--selector',
      'environment=dev',
      '--types',
      'component,namespaces',
      '--types',
      'rolebinding',
    ]
    const { stdout, stderr } = await succeed(['create', 'scoped', '--role', 'editor', ...scope])
    const { body } = await whoami(stdout)
    assert.equal(body.selector, 'environment=dev')
    assert.deepEqual(body.types, ['platform_components', 'namespaces', 'rolebindings'])
    assert.match(stderr, /role editor for \(environment=dev\) platform_components,namespaces,rolebindings,/)
    const cluster = await succeed(['create', 'of-two', '--role', 'cluster', '--cluster', 'two'])
    assert.equal((await whoami(cluster.stdout)).body.cluster, 'two')
    assert.match(cluster.stderr, /role cluster for two, never expires/)
  })

  test('takes an end: so long from now, a day, or a moment', async () => {
    const started = Date.now()
    const { stderr } = await succeed(['create', 'for-90d', '--role', 'viewer', '--expires', '90d'])
    const from = Date.parse((await held('for-90d')).expires_at) - 90 * DAY_MS
    assert.ok(from >= started && from <= Date.now())
    assert.match(stderr, /expires in 90d\n/)
    for (const [name, expires, expected] of [
      ['day', '2099-01-31', '2099-01-31T00:00:00.000Z'],
      ['moment', '2099-01-31T12:00:00+02:00', '2099-01-31T10:00:00.000Z'],
    ] as const) {
      await succeed(['create', name, '--role', 'viewer', '--expires', expires])
      assert.equal((await held(name)).expires_at, expected)
    }
  })

  test('answers as JSON, YAML or a path with the secret inside', async () => {
    const json = JSON.parse((await succeed(['create', 'in-json', '--role', 'viewer', '-o', 'json'])).stdout)
    const yaml = parse((await succeed(['create', 'in-yaml', '--role', 'viewer', '-o', 'yaml'])).stdout)
    for (const [name, { secret, ...rest }] of Object.entries({ 'in-json': json, 'in-yaml': yaml })) {
      assert.match(secret, SECRET)
      assert.deepEqual(rest, await held(name))
    }
    const path = await succeed(['create', 'by-path', '--role', 'viewer', '-o', 'jsonpath={.secret}'])
    assert.equal((await whoami(path.stdout)).body.name, 'by-path')
  })

  test('makes nothing when what is asked for is wrong', async () => {
    const wrong: readonly (readonly [code: number, says: RegExp | string, args: readonly string[]])[] = [
      [2, "required option '--role <role>' not specified", ['x']],
      [2, 'Allowed choices are cluster, poller, mirror, viewer, editor, admin', ['x', '--role', 'boss']],
      [2, "missing required argument 'name'", ['--role', 'viewer']],
      [2, '--expires must be like 12h, 90d, 2026-01-31', ['x', '--role', 'viewer', '--expires', 'soon']],
      [2, '--expires must be', ['x', '--role', 'viewer', '--expires', '99999999d']],
      [2, 'the secret would be lost', ['x', '--role', 'viewer', '-o', 'name']],
      [2, '--message holds control characters', ['x', '--role', 'viewer', '-m', 'a\u0007b']],
      [1, '/expires_at', ['x', '--role', 'viewer', '--expires', '2020-01-31']],
      [1, '/cluster is required for the role cluster', ['x', '--role', 'cluster']],
      [1, '/types/0 is an unknown type', ['x', '--role', 'editor', '--types', 'nonsense']],
      [1, /\/name is what the audit calls somebody else/, ['writer', '--role', 'viewer']],
    ]
    await Promise.all(wrong.map(([code, says, args]) => fail(code, says, ['create', ...args])))
    assert.deepEqual((await service.call('GET', '/tokens?name=x')).body, [])
  })

  test('a name that is taken is told with the way to a new secret', async () => {
    await made({ name: 'taken' })
    const says = /there is a token "taken" already[\s\S]*^Hint: flux-resourceset-cli token rotate taken/m
    await fail(1, says, ['create', 'taken', '--role', 'viewer'])
  })

  test('is for admins; others are told so, and how to see who they are', async () => {
    const says =
      /this needs the role admin, and yours is viewer\n[\s\S]*^Hint: .*--write-token.*token whoami$/m
    const env = { FLUX_API_WRITE_TOKEN: READ_TOKEN }
    await fail(1, says, ['create', 'mine', '--role', 'admin'], { env })
    await fail(1, says, ['list'], { env })
  })

  test('a secret that got lost on the way is told, with what to do; that then works', async (t) => {
    const options = await losing(t, 'POST', '/tokens')
    const says =
      /^Error: the token "lost" was made, but its secret got lost on the way.*\nHint: flux-resourceset-cli token rotate lost --grace 0s /m
    await fail(3, says, ['create', 'lost', '--role', 'viewer'], options)
    const { stdout } = await succeed(['rotate', 'lost', '--grace', '0s'], options)
    assert.equal((await whoami(stdout)).body.name, 'lost')
  })
})

describe('token list', AT_ONCE, () => {
  test('shows what each is for, until when, and when it was last used and from where', async (t) => {
    const own = await start(t)
    const { url } = own
    const none = await succeed(['list'], { url })
    assert.deepEqual([none.stdout, none.stderr], ['', 'No tokens found.\n'])
    await made({ name: 'a', role: 'editor', selector: 'environment=dev', types: ['namespaces'] }, own)
    await made({ name: 'b', role: 'cluster', cluster: 'two', expires_at: '2099-01-01T00:00:00Z' }, own)
    await whoami(await made({ name: 'c', role: 'admin' }, own), own)
    await own.call('POST', '/tokens/b/rotate')
    const lines = async (...args: string[]) =>
      (await succeed(['list', ...args], { url })).stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split(/ {2,}/))
    const [head, a, b, c] = await lines()
    assert.deepEqual(head, ['NAME', 'ROLE', 'SCOPE', 'EXPIRES', 'SECRETS', 'LAST-USED', 'FROM'])
    assert.deepEqual(a, ['a', 'editor', '(environment=dev) namespaces', 'never', '1', 'never'])
    assert.match(b?.join('|') ?? '', /^b\|cluster\|two\|in \d+d\|2\|never$/)
    assert.match(c?.join('|') ?? '', /^c\|admin\|never\|1\|\d+[sm] ago\|127\.0\.0\.1$/)
    const [wideHead, , wideB] = await lines('-o', 'wide')
    assert.deepEqual(wideHead?.slice(7), ['ID', 'CREATED', 'BY', 'ROTATED'])
    assert.match(wideB?.slice(-4).join('|') ?? '', /^tok-[0-9a-f]{16}\|\d+[sm] ago\|writer\|\d+[sm] ago$/)
    assert.deepEqual(
      (await lines('--role', 'cluster', '--no-headers')).map(([name]) => name),
      ['b'],
    )
    assert.deepEqual(await lines('--cluster', 'two', '-o', 'name'), [['tokens/b']])
    const json = JSON.parse((await succeed(['list', '-o', 'json'], { url })).stdout)
    assert.deepEqual(json, (await own.call('GET', '/tokens')).body)
  })

  test('reads every page', async (t) => {
    const all = Array.from({ length: 2500 }, (_, i) => ({ id: `tok-${i}`, name: `n-${i}`, role: 'viewer' }))
    const asked: string[] = []
    const { url } = await serve(t, ({ url: path = '', headers }, response) => {
      const { searchParams, pathname } = new URL(path, 'http://here')
      const [limit, offset] = ['limit', 'offset'].map((name) => Number(searchParams.get(name)))
      if (pathname === '/tokens') asked.push(headers.authorization ?? '')
      const page = pathname === '/tokens' ? all.slice(offset, (offset ?? 0) + (limit ?? 0)) : {}
      response
        .writeHead(200, {
          'content-type': 'application/json',
          'x-revision': '1',
          'x-total-count': String(all.length),
        })
        .end(JSON.stringify(page))
    })
    const { stdout } = await succeed(['list', '-o', 'json'], { url })
    assert.deepEqual(JSON.parse(stdout), all)
    assert.deepEqual(asked, Array(3).fill(`Bearer ${WRITE_TOKEN}`), 'with the token of an admin')
  })
})

describe('token rotate', AT_ONCE, () => {
  test('puts the new secret on stdout, and the old one is good for a day', async () => {
    const old = await made({ name: 'turned' })
    const { stdout, stderr } = await succeed(['rotate', 'turned', '-m', 'as every year'])
    assert.match(stdout, ONLY_SECRET)
    assert.match(stderr, /^token "turned" \(tok-\w+\) rotated: role viewer, .*; earlier secrets end in 24h\n/)
    for (const token of [old, stdout]) assert.equal((await whoami(token)).body.name, 'turned')
    const [revision] = (await service.call('GET', '/revisions?type=tokens&q=every%20year')).body
    assert.equal(revision.message, 'as every year')
  })

  test('ends the old one at once with a grace of 0s, by name or by id', async () => {
    const old = await made({ name: 'ended' })
    const first = await succeed(['rotate', (await held('ended')).id, '--grace', '24h'])
    const { stdout, stderr } = await succeed(['rotate', 'ended', '--grace', '0s', '-o', 'json'])
    const answer = JSON.parse(stdout)
    for (const token of [old, first.stdout]) assert.equal((await whoami(token)).status, 401)
    assert.equal((await whoami(answer.secret)).body.name, 'ended')
    assert.match(stderr, /; earlier secrets are void\n/)
    assert.equal(answer.old_secrets_expire_at, undefined)
  })

  test('changes nothing when what is asked for is wrong', async () => {
    const old = await made({ name: 'kept' })
    await fail(2, '--grace must be a duration from 0s to 90d', ['rotate', 'kept', '--grace', '1y'])
    await fail(2, 'the secret would be lost', ['rotate', 'kept', '-o', 'name'])
    await fail(1, 'no token "nobody"', ['rotate', 'nobody'])
    await fail(2, '".." is not an id', ['rotate', '..'])
    assert.equal((await held('kept')).rotated_at, undefined)
    assert.equal((await whoami(old)).status, 200)
  })

  test('a secret that got lost on the way is told, and the old one is still good', async (t) => {
    const old = await made({ name: 'halfway' })
    const options = await losing(t, 'POST', '/tokens/halfway/rotate')
    const says =
      /^Error: the token "halfway" was rotated, but its secret got lost.*\nHint: .* token rotate halfway --grace 1h /m
    await fail(3, says, ['rotate', 'halfway', '--grace', '1h'], options)
    assert.equal((await whoami(old)).status, 200)
  })
})

describe('token revoke', AT_ONCE, () => {
  test('revokes several, by names and ids', async () => {
    const secrets = await Promise.all(['r-1', 'r-2'].map((name) => made({ name })))
    const { id } = await held('r-2')
    const { stdout, stderr } = await succeed(['revoke', 'r-1', id, 'r-1', '-m', 'they left', '--yes'])
    assert.deepEqual([stdout, stderr], ['token "r-1" revoked\ntoken "r-2" revoked\n', ''])
    for (const secret of secrets) assert.equal((await whoami(secret)).status, 401)
    assert.equal((await service.call('GET', '/revisions?type=tokens&q=they%20left')).body.length, 2)
    await made({ name: 'r-3' })
    const asked = 'would revoke this token, and there is no terminal to ask on: nothing was changed'
    await fail(2, [asked, /^Hint: add --yes$/m], ['revoke', 'r-3'])
    assert.equal((await succeed(['revoke', 'r-3', '-o', 'name', '--yes'])).stdout, 'tokens/r-3\n')
  })

  test('revokes none when one of them is not there', async () => {
    const secret = await made({ name: 'stays' })
    await fail(1, 'no token "nobody"', ['revoke', 'stays', 'nobody'])
    assert.equal((await whoami(secret)).status, 200)
  })

  test('asks first on a terminal, unless it is told not to', async () => {
    const secret = await made({ name: 'asked' })
    await whoami(secret)
    const say = async (typed: string) =>
      onTerminal(['token', 'revoke', 'asked'], {
        url: service.url,
        typing: [['Revoke this token on http', typed]],
      })
    const no = await say('no\r')
    assert.equal(no.code, 4, no.screen)
    assert.match(no.screen, /^asked: role viewer, last used \d+[sm] ago from 127\.0\.0\.1$/m)
    assert.match(no.screen, /nothing was changed/)
    assert.equal((await whoami(secret)).status, 200)
    const yes = await say('yes\r')
    assert.equal(yes.code, 0, yes.screen)
    assert.match(yes.screen, /token "asked" revoked/)
    assert.equal((await whoami(secret)).status, 401)
    await Promise.all(['p', 'q'].map((name) => made({ name })))
    const both = await onTerminal(['token', 'revoke', 'p', 'q', '--yes'], { url: service.url })
    assert.deepEqual(
      [both.code, both.screen],
      [0, 'token "p" revoked\ntoken "q" revoked\n'],
      'without a question',
    )
  })
})

describe('token whoami', AT_ONCE, () => {
  test('shows who, as what, how and until when', async () => {
    const secret = await made({
      name: 'somebody',
      role: 'editor',
      selector: 'environment=dev',
      expires_at: '2099-01-01T00:00:00Z',
    })
    const env = { FLUX_API_TOKEN: secret, FLUX_API_WRITE_TOKEN: undefined }
    const { stdout } = await succeed(['whoami'], { env })
    assert.match(
      stdout,
      /^Name: {5}somebody\nRole: {5}editor\nScope: {4}\(environment=dev\)\nBy: {7}a named token\nExpires: {2}in \d+d \(2099-01-01T00:00:00\.000Z\)\n$/,
    )
    const json = JSON.parse((await succeed(['whoami', '-o', 'json'], { env })).stdout)
    assert.deepEqual(json, (await whoami(secret)).body)
    assert.equal((await succeed(['whoami', '-o', 'name'], { env })).stdout, 'somebody\n')
  })

  test('shows both where changes are made with another token', async () => {
    const { stdout } = await succeed(['whoami'])
    assert.match(
      stdout,
      /^To read:\nName: +reader\nRole: +viewer\n[\s\S]*\nTo change:\nName: +writer\nRole: +admin\n/,
    )
    const json = JSON.parse((await succeed(['whoami', '-o', 'json'])).stdout)
    assert.deepEqual(json, {
      name: 'reader',
      via: 'environment',
      role: 'viewer',
      writes_as: { name: 'writer', via: 'environment', role: 'admin' },
    })
  })

  test('works where only polls are answered, and for whoever may only poll', async (t) => {
    const readOnly = await start(t, { mode: 'read-only' })
    assert.match((await succeed(['whoami'], { url: readOnly.url })).stdout, /viewer/)
    const secret = await made({ name: 'of-one', role: 'cluster', cluster: 'one' })
    const env = { FLUX_API_TOKEN: secret, FLUX_API_WRITE_TOKEN: secret }
    assert.match((await succeed(['whoami'], { env })).stdout, /^Role: +cluster\nScope: +one$/m)
  })

  test('without a good token it is told how to get one', async () => {
    const env = { FLUX_API_TOKEN: 'wrong', FLUX_API_WRITE_TOKEN: undefined }
    await fail(
      1,
      /401 unauthorized[\s\S]*^Hint: correct it, or log in \(flux-resourceset-cli login\)/m,
      ['whoami'],
      { env },
    )
  })
})

describe('what a role may not do', AT_ONCE, () => {
  test('is told with a hint that fits', async () => {
    const fixed = { name: 'hint', role: 'editor', selector: 'environment=dev' }
    const env = { FLUX_API_WRITE_TOKEN: await made(fixed) }
    const outside = await cli(['namespace', 'assign', 'team-b', '--cluster', 'two'], {
      url: service.url,
      env,
    })
    assert.equal(outside.code, 1)
    assert.match(outside.stderr, /outside your scope[\s\S]*^Hint: somebody with a wider scope.*token whoami/m)
    const poller = { FLUX_API_TOKEN: await made({ name: 'hint-2', role: 'poller' }) }
    const reading = await cli(['cluster', 'list'], { url: service.url, env: poller })
    assert.equal(reading.code, 1)
    assert.match(reading.stderr, /needs the role viewer[\s\S]*^Hint: log in as somebody else.*token whoami/m)
  })
})

test('names of tokens, roles and clusters are completed', async () => {
  await made({ name: 'complete-me' })
  const complete = async (line: string, env = {}) =>
    (await cli(['__complete', '--', ...line.split(' ')], { url: service.url, env })).stdout
  const lines = [
    'token rotate comp',
    'token revoke x comp',
    'token create x --role e',
    'token list --cluster t',
  ]
  assert.deepEqual(await Promise.all(lines.map((line) => complete(line))), [
    'complete-me\tviewer\n',
    'complete-me\tviewer\n',
    'editor\n',
    'two\n',
  ])
  assert.equal(await complete('token rotate comp', { FLUX_API_WRITE_TOKEN: READ_TOKEN }), '')
})
