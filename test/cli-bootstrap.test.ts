// `bootstrap` on the command line: the bundle on stdout or as files, with or without the token, for one cluster or many.
import assert from 'node:assert/strict'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, type TestContext, test } from 'node:test'
import { type CliOptions, cli, onTerminal, outcomesOf, type Run } from './cli-process.ts'
import { start } from './every-store.ts'
import { parseObjects } from './flux/tools.ts'
import { serve, standBefore } from './own-server.ts'
import {
  builtInTemplates,
  builtInTypes,
  READ_TOKEN,
  smallFleet,
  startService,
  type TestService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const HERE = 'https://fleet.example.com'
const HTTPS = ['--external-url', HERE]
const PLAIN_HTTP =
  'Warning: clusters would poll over plain http, token and all: give --external-url https://… for real ones\n'
const SECRET = /frs_[0-9A-Za-z]{49}/

/** Starting a process is most of the work, and no test here knows of another. */
const AT_ONCE = { concurrency: 3 }

let service: TestService
before(async () => {
  service = await startService()
})
after(() => service.stop())

/** Runs the program; whatever it is asked for, the caller's own tokens stay where they are. */
async function run(args: readonly string[], options: CliOptions = {}): Promise<Run> {
  const ran = await cli(['bootstrap', ...args], { url: service.url, ...options })
  for (const token of [READ_TOKEN, WRITE_TOKEN])
    for (const text of [token, Buffer.from(token).toString('base64')])
      assert.ok(![ran.stdout, ran.stderr].some((output) => output.includes(text)))
  assert.doesNotMatch(ran.stderr, SECRET)
  return ran
}

/** Runs it where it has nothing to remark; answers its stdout. */
async function output(args: readonly string[], options: CliOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await run(args, options)
  const remarks = stderr.replace(/^rotating .*: earlier secrets are valid for .*\n/, '')
  assert.deepEqual({ code, remarks }, { code: 0, remarks: '' }, stderr)
  return stdout
}

const { fail } = outcomesOf(run)

async function bundle(
  query: Readonly<Record<string, string>> = {},
  { of = service, cluster = 'one' }: { of?: TestService; cluster?: string } = {},
): Promise<string> {
  const url = `/clusters/${cluster}/bootstrap?${new URLSearchParams(query)}`
  const { status, text } = await of.call('GET', url, { token: READ_TOKEN })
  assert.equal(status, 200, text)
  return text
}

/** The names and texts of a folder's files, and of the folders in it. */
function filesIn(folder: string): Record<string, string> {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  const files = names.filter((name) => statSync(join(folder, name)).isFile())
  return Object.fromEntries(files.sort().map((name) => [name, readFileSync(join(folder, name), 'utf8')]))
}

/** A folder that is not there yet. */
function newFolder(t: TestContext): string {
  return join(temporaryFolder(t), 'some', 'where')
}

/** A service with these templates beside the built-in ones. */
function withTemplates(t: TestContext, files: Readonly<Record<string, string>>): Promise<TestService> {
  const types = builtInTypes()
  const folder = temporaryFolder(t)
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
  return start(t, { types, templates: builtInTemplates(types, folder) })
}

function modeOf(path: string): string {
  return (statSync(path).mode & 0o777).toString(8)
}

describe('the bundle of a cluster', AT_ONCE, () => {
  test('is on stdout as the API has it, byte by byte', async () => {
    const expected = await bundle({ api_url: HERE })
    assert.equal(await output(['one', ...HTTPS]), expected)
    assert.equal(await output(['one', ...HTTPS, '-o', 'yaml']), expected)
    assert.equal(await output(['one', ...HTTPS, '-o', 'wide']), expected)
  })

  test('is as JSON a list that kubectl takes', async () => {
    const expected = await bundle({ api_url: HERE })
    const items = parseObjects(expected)
    assert.deepEqual(JSON.parse(await output(['one', ...HTTPS, '-o', 'json'])), {
      apiVersion: 'v1',
      kind: 'List',
      items,
    })
  })

  test('is as JSON what Kubernetes reads in the YAML', async (t) => {
    const text =
      'apiVersion: v1\nkind: Pod\nmetadata: { name: zoo }\nspec: { mode: 0444, truth: yes, text: "no" }\n'
    const { url } = await withTemplates(t, { 'zoo.yaml': text })
    const { items } = JSON.parse(await output(['one', ...HTTPS, '-o', 'json'], { url }))
    const zoo = items.find(({ kind }: { kind: string }) => kind === 'Pod')
    assert.deepEqual(zoo.spec, { mode: 0o444, truth: true, text: 'no' })
  })

  test('is as names the kinds and names of its objects, and what a path leads to', async () => {
    assert.deepEqual((await output(['one', ...HTTPS, '-o', 'name'])).split('\n'), [
      'Namespace/flux-system',
      'ConfigMap/cluster-identity',
      'Secret/internal-api-token',
      'FluxInstance/flux',
      'ResourceSetInputProvider/namespaces',
      'ResourceSetInputProvider/platform-components',
      'ResourceSetInputProvider/rolebindings',
      'ResourceSetInputProvider/fleet-ack',
      'ResourceSet/fleet-events',
      'ResourceSet/fleet-events-operator',
      'ResourceSet/fleet-ack',
      'ResourceSet/namespaces',
      'ResourceSet/platform-components',
      'ResourceSet/clusterrolebindings',
      'ResourceSet/rolebindings',
      '',
    ])
    const path = '-ojsonpath={.items[1].data.CLUSTER_DNS}'
    assert.equal(await output(['one', ...HTTPS, path]), 'one.k8s.example.com')
  })

  test('is what the flags ask for', async () => {
    const flags = [
      ['--interval', '90s'],
      ['--token-secret', 'my-token'],
      ['--cert-secret', 'my-cert'],
      ['--no-flux-instance'],
      ['--flavor', 'concrete'],
      ['--ack', 'types'],
      ['--events', 'off'],
    ]
    const query = {
      api_url: HERE,
      interval: '90s',
      token_secret: 'my-token',
      cert_secret: 'my-cert',
      flux_instance: 'false',
      ack: 'types',
      events: 'off',
    }
    assert.equal(await output(['one', ...HTTPS, ...flags.flat()]), await bundle(query))
    assert.equal(await output(['two', '--flavor=identity']), await bundle({ flavor: 'identity' }))
  })

  test('is the same each time', async () => {
    const [first, second] = await Promise.all([output(['one', ...HTTPS]), output(['one', ...HTTPS])])
    assert.equal(second, first)
  })

  test('needs the token for reading alone', async (t) => {
    const seen = new Set<string | undefined>()
    const front = await standBefore(t, service, {
      before: ({ url = '', headers }) => {
        if (url.includes('/bootstrap')) seen.add(headers.authorization)
      },
    })
    await output(['one', ...HTTPS], { url: front.url })
    await output(['one', ...HTTPS], { url: front.url, env: { FLUX_API_WRITE_TOKEN: undefined } })
    assert.deepEqual([...seen], [`Bearer ${READ_TOKEN}`])
  })

  test('is on a terminal without what would move its cursor', async (t) => {
    const fleet = smallFleet()
    const [one] = fleet.clusters
    const nasty = await start(t, {
      fleet: { ...fleet, clusters: [{ ...one, cluster_name: 'evil \u202etxt' }] },
    })
    const { code, screen } = await onTerminal(['bootstrap', 'one', ...HTTPS], { url: nasty.url })
    assert.equal(code, 0, screen)
    assert.ok(!screen.includes('\u202e'))
    assert.match(screen, /^kind: ResourceSet$/m)
  })
})

describe('where clusters reach the API', AT_ONCE, () => {
  test('is what the server knows of itself, and a word on plain http comes beside it', async () => {
    const { code, stdout, stderr } = await run(['one', '--quiet'])
    assert.deepEqual([code, stderr], [0, PLAIN_HTTP])
    assert.equal(stdout, await bundle())
    assert.match(stdout, new RegExp(`^ {2}INTERNAL_API_URL: ${service.url}$`, 'm'))
  })

  test('is --external-url rather than --api-url, and --api-url rather than what the server knows', async (t) => {
    const told = await start(t, { externalUrl: 'https://told.example.com' })
    const urlIn = (text: string) => /^ {2}INTERNAL_API_URL: (.*)$/m.exec(text)?.[1]
    assert.equal(urlIn(await output(['one'], { url: told.url })), 'https://told.example.com')
    // Tokens of the environment go only to the URL beside them.
    const token = ['--api-token', READ_TOKEN]
    const given = await run(['one', '--api-url', `${told.url}/`, ...token], { url: 'http://127.0.0.1:9' })
    assert.deepEqual([given.code, given.stderr, urlIn(given.stdout)], [0, PLAIN_HTTP, told.url])
    const flags = ['one', '--api-url', told.url, '--external-url', `${HERE}/behind/`, ...token]
    assert.equal(urlIn(await output(flags, { url: 'http://127.0.0.1:9' })), `${HERE}/behind`)
  })

  const INSECURE: Record<string, string> = {
    'a registry':
      'apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata:\n  name: local\nspec:\n  insecure: true\n',
    'a provider':
      'apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata:\n  name: local\nspec:\n  type: ExternalService\n  url: http://local.example.com\n',
  }

  for (const [what, text] of Object.entries(INSECURE)) {
    test(`draws no word on https, whatever ${what} in a template says`, async (t) => {
      const { url } = await withTemplates(t, { 'local.yaml': text })
      const stdout = await output(['one', ...HTTPS], { url })
      assert.ok(stdout.includes(`---\n${text}`), stdout)
    })
  }

  test('draws no word where there is no URL yet', async () => {
    assert.equal(await output(['one', '--flavor', 'identity']), await bundle({ flavor: 'identity' }))
  })
})

/** The token in the Secret of a bundle. */
function tokenIn(text: string): string {
  const secrets = parseObjects(text).filter(isTokenSecret) as { data?: { token: string } }[]
  assert.equal(secrets.length, 1)
  const token = Buffer.from(secrets[0]?.data?.token ?? '', 'base64').toString()
  assert.match(token, SECRET)
  return token
}

/** What a Secret holds: to poll with, and to send events with. */
function dataOf(token: string): Record<string, string> {
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  return { token: encode(token), headers: encode(`Authorization: Bearer ${token}`) }
}

function isTokenSecret(object: unknown): boolean {
  return (object as { metadata: { name: string } }).metadata.name === 'internal-api-token'
}

/** What a token is good for: nothing when it is none any more. */
async function grantOf(token: string, of = service): Promise<unknown> {
  const { status, body } = await of.call('GET', '/whoami', { token })
  return status === 401 ? undefined : { name: body.name, role: body.role, cluster: body.cluster }
}

const ownToken = (cluster: string) => ({ name: `cluster-${cluster}`, role: 'cluster', cluster })

async function tokenNames(of: TestService): Promise<string[]> {
  const { body } = await of.call('GET', '/tokens')
  return body.map(({ name }: { name: string }) => name)
}

describe('--with-token', AT_ONCE, () => {
  test("puts the cluster's own token into the Secret, in place of the comment that asks for one, and changes nothing else", async (t) => {
    const own = await start(t)
    const plain = await bundle({ api_url: HERE }, { of: own })
    const filled = await output(['one', ...HTTPS, '--with-token'], { url: own.url })
    const token = tokenIn(filled)
    const asks = /^# The token belongs here.*\n# kubectl .*\n\n/m
    assert.match(plain, asks)
    const data = Object.entries(dataOf(token)).map(([key, value]) => `  ${key}: ${value}\n`)
    assert.equal(
      filled,
      plain.replace(asks, '').replace(/^type: Opaque\n/m, (line) => `${line}data:\n${data.join('')}`),
    )
    assert.deepEqual(await grantOf(token, own), ownToken('one'))
    const polls = ['one', 'two'].map((cluster) =>
      own.call('GET', `/api/v2/flux/clusters/${cluster}.k8s.example.com/namespaces`, { token }),
    )
    assert.deepEqual(
      (await Promise.all(polls)).map(({ status }) => status),
      [200, 403],
    )
    const [revision] = (await own.call('GET', '/revisions?limit=1')).body
    assert.equal(revision.message, 'for the bootstrap of cluster one')
  })

  test('as JSON has it too', async (t) => {
    const own = await start(t)
    const list = JSON.parse(await output(['two', ...HTTPS, '--with-token', '-o', 'json'], { url: own.url }))
    const token = Buffer.from(list.items[2].data.token, 'base64').toString()
    assert.deepEqual(await grantOf(token, own), ownToken('two'))
  })

  test('rotates the token that is there, and the cluster goes on with the old one for as long as is said', async (t) => {
    const own = await start(t)
    const make = async (...more: string[]) =>
      tokenIn(await output(['one', ...HTTPS, '--with-token', ...more], { url: own.url }))
    const first = await make()
    const second = await make()
    assert.notEqual(second, first)
    assert.deepEqual(await tokenNames(own), ['cluster-one'])
    for (const token of [first, second]) assert.deepEqual(await grantOf(token, own), ownToken('one'))
    const { old_secrets_expire_at: end, rotated_at } = (await own.call('GET', '/tokens/cluster-one')).body
    assert.equal(Date.parse(end) - Date.parse(rotated_at), 24 * 3600 * 1000)
    const third = await make('--token-grace', '0s')
    assert.deepEqual(await Promise.all([first, second, third].map((token) => grantOf(token, own))), [
      undefined,
      undefined,
      ownToken('one'),
    ])
  })

  test('asks on a terminal before it rotates, and leaves the token as it is after a no', async (t) => {
    const own = await start(t)
    const first = tokenIn(await output(['one', ...HTTPS, '--with-token'], { url: own.url }))
    const before = (await own.call('GET', '/tokens/cluster-one')).body
    const line = (command: string): string => `${command} > bundle.yaml`
    const asked = (answer: string) =>
      onTerminal(['bootstrap', 'one', ...HTTPS, '--with-token'], {
        url: own.url,
        cwd: temporaryFolder(t),
        line,
        typing: [['Rotate token cluster-one', answer]],
      })
    const refused = await asked('no\n')
    assert.equal(refused.code, 4, refused.screen)
    assert.match(refused.screen, /earlier secrets are valid for 24h: apply the bundle by then/)
    assert.match(refused.screen, /nothing was changed\n$/)
    assert.deepEqual((await own.call('GET', '/tokens/cluster-one')).body, before)
    const agreed = await asked('yes\n')
    assert.equal(agreed.code, 0, agreed.screen)
    const { rotated_at } = (await own.call('GET', '/tokens/cluster-one')).body
    assert.ok(rotated_at > before.created_at && (await grantOf(first, own)) !== undefined)
  })

  test('does not touch a token of that name that is for something else', async (t) => {
    const own = await start(t)
    await own.call('POST', '/tokens', { body: { name: 'cluster-one', role: 'viewer' } })
    await own.call('POST', '/tokens', { body: { name: 'cluster-two', role: 'cluster', cluster: 'one' } })
    const { revision } = own.engine.state
    for (const cluster of ['one', 'two'])
      await fail(1, 'is not for polls of this cluster', [cluster, ...HTTPS, '--with-token'], { url: own.url })
    assert.equal(own.engine.state.revision, revision)
  })

  test('fills the Secret and nothing else, whatever a cluster is called and templates hold', async (t) => {
    const opaque = (name: string): string =>
      `apiVersion: v1\nkind: Secret\nmetadata:\n  name: ${name}\n  namespace: flux-system\ntype: Opaque\n`
    const own = await withTemplates(t, { 'a.yaml': opaque('first'), 'z.yaml': opaque('last') })
    const renamed = await own.call('PATCH', '/clusters/one', { body: { cluster_name: 'type: Opaque' } })
    assert.equal(renamed.status, 200, renamed.text)
    for (const flavor of ['concrete', 'identity']) {
      const plain = parseObjects(await bundle({ flavor, api_url: HERE }, { of: own }))
      const filled = await output(['one', ...HTTPS, '--flavor', flavor, '--with-token'], { url: own.url })
      const token = tokenIn(filled)
      assert.deepEqual(await grantOf(token, own), ownToken('one'))
      const data = dataOf(token)
      const expected = plain.map((object) => (isTokenSecret(object) ? { ...object, data } : object))
      assert.deepEqual(parseObjects(filled), expected)
    }
  })

  test('is for admins, who alone may make tokens; others are told what is needed', async (t) => {
    const own = await start(t)
    const { secret } = (await own.call('POST', '/tokens', { body: { name: 'ed', role: 'editor' } })).body
    for (const token of [READ_TOKEN, secret]) {
      const folder = newFolder(t)
      const env = { FLUX_API_WRITE_TOKEN: token }
      const needs =
        /^Error: --with-token makes a token for the cluster, which only the role admin may\n {2}this needs the role admin, and yours is \w+\n[\s\S]*token create cluster-one --role cluster --cluster one$/m
      await fail(1, needs, ['one', ...HTTPS, '--with-token'], { url: own.url, env })
      await fail(1, needs, ['-l', 'id', ...HTTPS, '--with-token', '--output-dir', folder], {
        url: own.url,
        env,
      })
      assert.deepEqual(filesIn(folder), {})
    }
    assert.deepEqual(await tokenNames(own), ['ed'])
  })

  test('makes no token when anything else is wrong', async (t) => {
    const own = await start(t)
    const file = join(temporaryFolder(t), 'file')
    writeFileSync(file, '')
    const broken = temporaryFolder(t)
    writeFileSync(join(broken, 'clusters'), '')
    const cases: readonly (readonly [code: number, says: string, args: readonly string[]])[] = [
      [2, '--token-secret names a Secret that is there already', ['one', '--token-secret', 'mine']],
      [2, '--token-grace must be a duration from 0s to 90d', ['one', '--token-grace', '1y']],
      [2, '--token-grace must be a duration from 0s to 90d', ['one', '--token-grace', '91d']],
      [2, '--output must be one of', ['one', '-o', 'xml']],
      [2, 'the token would be lost', ['one', '-o', 'name']],
      [2, '--selector needs --output-dir', ['--selector', 'id']],
      [2, 'cannot be written', ['one', '--output-dir', file]],
      [2, 'cannot be written', ['one', '--output-dir', '/proc']],
      [2, 'cannot be written', ['one', '--flavor', 'identity', '--output-dir', broken]],
      [1, 'no cluster "nope"', ['nope']],
      [1, '--interval must be', ['one', '--interval', 'soon']],
      [1, '--flavor must be', ['one', '--flavor', 'sweet', '--output-dir', newFolder(t)]],
    ]
    for (const [code, says, args] of cases)
      await fail(code, says, [...args, ...HTTPS, '--with-token'], { url: own.url })
    await fail(2, '--token-grace goes with --with-token', ['one', ...HTTPS, '--token-grace', '1h'])
    assert.deepEqual(await tokenNames(own), [])
    assert.equal(own.engine.state.revision, 1)
  })

  test('a secret that got lost on the way is told, and the next run gives another one', async (t) => {
    const own = await start(t)
    let isCut = false
    const front = await standBefore(t, own, {
      after: ({ method, url }) => {
        if (method !== 'POST' || url !== '/tokens/issue' || isCut) return
        isCut = true
        throw new Error('the answer is lost')
      },
    })
    const args = ['one', ...HTTPS, '--with-token']
    await fail(3, 'the tokens were issued, but their secrets got lost on the way', args, { url: front.url })
    assert.deepEqual(await grantOf(tokenIn(await output(args, { url: front.url })), own), ownToken('one'))
  })

  test('without it there is no token, in any format', async () => {
    const { items } = JSON.parse(await output(['one', ...HTTPS, '-o', 'json']))
    for (const objects of [items, parseObjects(await output(['one', ...HTTPS]))]) {
      const secret = objects.find(isTokenSecret) as { kind: string; data?: unknown }
      assert.deepEqual([secret.kind, secret.data], ['Secret', undefined])
    }
    assert.deepEqual(await tokenNames(service), [])
  })
})

describe('--output-dir', AT_ONCE, () => {
  test('writes one file that nobody else can read, into a folder that it makes', async (t) => {
    const folder = newFolder(t)
    assert.equal(
      await output(['one', ...HTTPS, '--output-dir', folder]),
      `wrote ${join(folder, 'one.yaml')}\n`,
    )
    assert.deepEqual(filesIn(folder), { 'one.yaml': await bundle({ api_url: HERE }) })
    assert.equal(modeOf(join(folder, 'one.yaml')), '600')
    assert.equal(modeOf(folder), '700')
  })

  test('writes a file for each cluster that a selector matches', async (t) => {
    const folder = newFolder(t)
    const args = ['--selector', 'id', ...HTTPS, '--output-dir', folder]
    assert.equal(await output(args), `wrote 2 files to ${folder}\n`)
    const expected = {
      'one.yaml': await bundle({ api_url: HERE }),
      'two.yaml': await bundle({ api_url: HERE }, { cluster: 'two' }),
    }
    assert.deepEqual(filesIn(folder), expected)
    const paths = Object.keys(expected).map((name) => join(folder, name))
    assert.deepEqual(JSON.parse(await output([...args, '-o', 'json'])), { files: paths })
    assert.equal(await output([...args, '-o', 'name']), paths.map((path) => `${path}\n`).join(''))
    assert.deepEqual(filesIn(folder), expected)
    const prod = newFolder(t)
    await output(['-l', 'environment=prod', ...HTTPS, '--output-dir', prod])
    assert.deepEqual(Object.keys(filesIn(prod)), ['two.yaml'])
  })

  test('writes of the identity flavor one bundle for all, and for each cluster who it is', async (t) => {
    const folder = newFolder(t)
    const args = ['--flavor', 'identity', '--selector', 'id', ...HTTPS, '--output-dir', folder]
    assert.equal(await output(args), `wrote 3 files to ${folder}\n`)
    const files = filesIn(folder)
    const names = ['bootstrap.yaml', join('clusters', 'one.yaml'), join('clusters', 'two.yaml')]
    assert.deepEqual(Object.keys(files), names)
    assert.equal(files['bootstrap.yaml'], await bundle({ flavor: 'identity' }))
    const [, namespace = ''] = (await bundle({ flavor: 'identity' })).split(/^---\n/m)
    for (const name of ['prune', 'substitute'])
      assert.match(namespace, new RegExp(`^ +kustomize.toolkit.fluxcd.io/${name}: disabled$`, 'm'))
    for (const cluster of ['one', 'two']) {
      const [, , identity] = (await bundle({ api_url: HERE }, { cluster })).split(/^---\n/m)
      assert.match(identity ?? '', /^ {2}name: cluster-identity$/m)
      assert.equal(files[join('clusters', `${cluster}.yaml`)], `${namespace}---\n${identity}`)
    }
    for (const name of names) assert.equal(modeOf(join(folder, name)), '600')
    for (const name of [folder, join(folder, 'clusters')]) assert.equal(modeOf(name), '700')
    const paths = names.map((name) => join(folder, name))
    assert.deepEqual(JSON.parse(await output([...args, '-o', 'json'])), { files: paths })
    assert.deepEqual(filesIn(folder), files)
  })

  test('writes of the identity flavor each token to its own cluster, and none to what all of them share', async (t) => {
    const own = await start(t)
    const folder = newFolder(t)
    const args = ['--flavor', 'identity', '-l', 'id', ...HTTPS, '--with-token', '--output-dir', folder]
    assert.equal(await output(args, { url: own.url }), `wrote 3 files to ${folder}\n`)
    const { 'bootstrap.yaml': shared = '', ...others } = filesIn(folder)
    assert.equal(
      shared,
      await bundle({ flavor: 'identity', token_secret: 'internal-api-token' }, { of: own }),
    )
    assert.ok(!parseObjects(shared).some(isTokenSecret))
    assert.match(shared, /^ +name: internal-api-token$/m, 'its providers still read the Secret')
    const tokens = Object.values(others).map(tokenIn)
    assert.deepEqual(await Promise.all(tokens.map((token) => grantOf(token, own))), [
      ownToken('one'),
      ownToken('two'),
    ])
    for (const [i, [name, text]] of Object.entries(others).entries()) {
      const whole = parseObjects(
        await bundle({ api_url: HERE }, { of: own, cluster: ['one', 'two'][i] ?? '' }),
      )
      const data = dataOf(tokens[i] ?? '')
      const [namespace] = parseObjects(shared)
      assert.deepEqual(parseObjects(text), [namespace, whole[1], { ...(whole[2] as object), data }])
      assert.doesNotMatch(text, /^#/m)
      assert.equal(modeOf(join(folder, name)), '600')
    }
  })

  test('writes a token of its own to the file of every cluster, however many there are', async (t) => {
    const fleet = smallFleet()
    const [one] = fleet.clusters
    const ids = Array.from({ length: 20 }, (_, i) => `c-${String(i).padStart(2, '0')}`)
    const clusters = ids.map((id) => ({ ...one, id, cluster_name: id, cluster_dns: `${id}.k8s.example.com` }))
    const own = await start(t, { fleet: { ...fleet, clusters } })
    const folder = newFolder(t)
    const args = ['-l', 'id', ...HTTPS, '--with-token', '--output-dir', folder]
    for (let run = 0; run < 2; run++) {
      assert.equal(await output(args, { url: own.url }), `wrote 20 files to ${folder}\n`)
      const files = filesIn(folder)
      for (const id of ids) {
        assert.deepEqual(await grantOf(tokenIn(files[`${id}.yaml`] ?? ''), own), ownToken(id))
        assert.equal(modeOf(join(folder, `${id}.yaml`)), '600')
      }
    }
    assert.equal((await tokenNames(own)).length, 20)
    assert.equal(own.engine.state.revision, 3, 'all tokens of a run are one revision')
  })

  test('makes no token and writes no file where one cannot be made, and says which', async (t) => {
    const own = await start(t)
    await own.call('POST', '/tokens', { body: { name: 'cluster-two', role: 'viewer' } })
    const { revision } = own.engine.state
    const folder = newFolder(t)
    const args = ['-l', 'id', ...HTTPS, '--with-token', '--output-dir', folder]
    await fail(
      1,
      /^Error: there is a token "cluster-two" already, and it is not for polls of this cluster/,
      args,
      {
        url: own.url,
      },
    )
    assert.deepEqual(filesIn(folder), {})
    assert.equal(own.engine.state.revision, revision)
  })

  test('writes of the identity flavor the same two files for one cluster', async (t) => {
    const folder = newFolder(t)
    const args = ['one', '--flavor', 'identity', ...HTTPS, '--output-dir', folder]
    assert.equal(await output(args), `wrote 2 files to ${folder}\n`)
    const files = filesIn(folder)
    assert.deepEqual(Object.keys(files), ['bootstrap.yaml', join('clusters', 'one.yaml')])
    assert.equal(files['bootstrap.yaml'], await bundle({ flavor: 'identity' }))
  })

  test('replaces files at once, so that whoever reads one has all of the old or all of the new', async (t) => {
    const folder = temporaryFolder(t)
    const path = join(folder, 'one.yaml')
    writeFileSync(path, 'old', { mode: 0o644 })
    writeFileSync(join(folder, 'other.yaml'), 'other')
    const { ino } = statSync(path)
    const reader = openSync(path, 'r')
    t.after(() => closeSync(reader))
    await output(['one', ...HTTPS, '--output-dir', folder])
    assert.equal(readFileSync(reader, 'utf8'), 'old')
    assert.notEqual(statSync(path).ino, ino)
    assert.equal(modeOf(path), '600')
    assert.deepEqual(filesIn(folder), { 'one.yaml': await bundle({ api_url: HERE }), 'other.yaml': 'other' })
  })

  for (const flavor of ['concrete', 'identity']) {
    test(`warns once of a type that no template reads (${flavor})`, async (t) => {
      const types = builtInTypes(join(import.meta.dirname, '../examples/network-policies'))
      const { url } = await start(t, { types, templates: builtInTemplates(builtInTypes()) })
      const args = ['--selector', 'id', '--flavor', flavor, '--output-dir', temporaryFolder(t), ...HTTPS]
      const { code, stderr } = await run(args, { url })
      assert.equal(code, 0, stderr)
      assert.equal(
        stderr,
        'Warning: Nothing is made of network-policies yet: there is no template that reads it.\n',
      )
    })

    test(`warns of plain http once, however many clusters there are (${flavor})`, async (t) => {
      const { code, stderr } = await run(['-l', 'id', '--flavor', flavor, '--output-dir', newFolder(t)])
      assert.deepEqual([code, stderr], [0, PLAIN_HTTP])
    })
  }

  test('stops at a cluster that has gone meanwhile, and leaves no half of a file', async (t) => {
    const own = await start(t)
    const front = await standBefore(t, own, {
      before: async ({ url = '' }) => {
        if (url.startsWith('/clusters/two/bootstrap')) await own.call('DELETE', '/clusters/two')
      },
    })
    const folder = newFolder(t)
    await fail(1, 'no cluster "two"', ['--selector', 'id', ...HTTPS, '--output-dir', folder], {
      url: front.url,
    })
    const left = existsSync(folder) ? filesIn(folder) : {}
    for (const [name, text] of Object.entries(left))
      assert.deepEqual([name, text], ['one.yaml', await bundle({ api_url: HERE })])
  })

  test('writes many clusters as the API has them', async (t) => {
    const fleet = smallFleet()
    const [one] = fleet.clusters
    const ids = Array.from({ length: 40 }, (_, i) => `c-${String(i).padStart(3, '0')}`)
    const clusters = ids.map((id) => ({ ...one, id, cluster_name: id, cluster_dns: `${id}.k8s.example.com` }))
    const large = await start(t, { fleet: { ...fleet, clusters } })
    const folder = newFolder(t)
    const stdout = await output(['-l', 'id', ...HTTPS, '--output-dir', folder], { url: large.url })
    assert.equal(stdout, `wrote 40 files to ${folder}\n`)
    const files = filesIn(folder)
    assert.deepEqual(
      Object.keys(files),
      ids.map((id) => `${id}.yaml`),
    )
    for (const id of ids)
      assert.equal(files[`${id}.yaml`], await bundle({ api_url: HERE }, { of: large, cluster: id }))
    const shared = newFolder(t)
    await output(['-l', 'id', '--flavor', 'identity', ...HTTPS, '--output-dir', shared], { url: large.url })
    assert.deepEqual(Object.keys(filesIn(shared)), [
      'bootstrap.yaml',
      ...ids.map((id) => join('clusters', `${id}.yaml`)),
    ])
  })

  for (const [is, prepare] of [
    ['takes no files', () => '/proc'],
    [
      'is a file',
      (t: TestContext) => {
        const path = join(temporaryFolder(t), 'file')
        writeFileSync(path, '')
        return path
      },
    ],
  ] as const) {
    test(`a folder that ${is} is told of as wrong use, in one line`, async (t) => {
      const folder = prepare(t)
      await fail(2, cannotWrite(join(folder, 'one.yaml')), ['one', ...HTTPS, '--output-dir', folder])
    })
  }

  test('a folder where the file should be is told of so too, and nothing is left beside it', async (t) => {
    const folder = temporaryFolder(t)
    mkdirSync(join(folder, 'one.yaml'))
    await fail(2, cannotWrite(join(folder, 'one.yaml')), ['one', ...HTTPS, '--output-dir', folder])
    assert.deepEqual(readdirSync(folder), ['one.yaml'])
  })

  test('a file in the way of the folder for clusters is told of as wrong use, in one line', async (t) => {
    const folder = temporaryFolder(t)
    writeFileSync(join(folder, 'clusters'), 'mine')
    const args = ['one', '--flavor', 'identity', ...HTTPS, '--output-dir', folder]
    await fail(2, cannotWrite(join(folder, 'clusters', 'one.yaml')), args)
    assert.equal(readFileSync(join(folder, 'clusters'), 'utf8'), 'mine')
  })

  function cannotWrite(path: string): RegExp {
    return new RegExp(`^Error: ${path} cannot be written: [^\\n]+\\n$`)
  }

  test('an empty name of a folder is wrong use', async (t) => {
    const cwd = temporaryFolder(t)
    for (const args of [['one'], ['-l', 'id'], ['one', '--flavor', 'identity']])
      await fail(2, '--output-dir must name a folder', [...args, ...HTTPS, '--output-dir', ''], { cwd })
    assert.deepEqual(readdirSync(cwd), [])
  })

  test('an id that leads elsewhere, whatever server says so, is written nowhere', async (t) => {
    const evil = await serve(t, async ({ url = '/' }, outgoing) => {
      const { status, headers, text } = await service.call('GET', url, { token: READ_TOKEN })
      const { 'content-length': _length, ...others } = headers
      const isList = url.startsWith('/clusters?')
      outgoing.writeHead(status, others).end(isList ? text.replace('"id":"two"', '"id":"../two"') : text)
    })
    const folder = newFolder(t)
    await fail(2, '"../two" is no id', ['-l', 'id', ...HTTPS, '--output-dir', folder], { url: evil.url })
    assert.ok(!existsSync(folder))
  })

  test('a cluster called bootstrap does not take the place of the bundle for all', async (t) => {
    const fleet = smallFleet()
    const [one] = fleet.clusters
    const own = await start(t, { fleet: { ...fleet, clusters: [{ ...one, id: 'bootstrap' }] } })
    const folder = newFolder(t)
    await output(['-l', 'id', '--flavor', 'identity', ...HTTPS, '--output-dir', folder], { url: own.url })
    const files = filesIn(folder)
    assert.deepEqual(Object.keys(files), ['bootstrap.yaml', join('clusters', 'bootstrap.yaml')])
    const shared = await bundle({ flavor: 'identity' }, { of: own, cluster: 'bootstrap' })
    assert.equal(files['bootstrap.yaml'], shared)
  })

  test('says who a cluster is, and nothing of what templates make', async (t) => {
    const own = await withTemplates(t, {
      'a.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: zoo\n',
      'b.yaml': 'apiVersion: v1\nkind: Namespace\nmetadata:\n  name: zoo\n',
    })
    const folder = newFolder(t)
    await output(['one', '--flavor', 'identity', ...HTTPS, '--output-dir', folder], { url: own.url })
    const objects = parseObjects(filesIn(folder)[join('clusters', 'one.yaml')] ?? '')
    const [namespace] = parseObjects(await bundle({ flavor: 'identity' }, { of: own }))
    const [, identity] = parseObjects(await bundle({ api_url: HERE }, { of: own }))
    assert.deepEqual(objects, [namespace, identity])
  })
})

describe('what goes wrong', AT_ONCE, () => {
  test('in what was asked for exits with 2, and writes nothing', async (t) => {
    const folder = newFolder(t)
    const WHICH = 'which cluster? Give its id, or --selector SELECTOR with --output-dir FOLDER'
    const cases: readonly (readonly [args: readonly string[], says: string])[] = [
      [[], WHICH],
      [['one', '--selector', 'id', '--output-dir', folder], WHICH],
      [['--selector', 'id'], '--selector needs --output-dir FOLDER: one file is written for each cluster'],
      [['one', 'two'], 'too many arguments'],
      [['one', '--colour', 'red'], "unknown option '--colour'"],
      [['one', '-o', 'xml'], '--output must be one of'],
      [['..'], '".." is not an id'],
      [['--selector', 'environment=uat', '--output-dir', folder], 'no cluster matches "environment=uat"'],
    ]
    for (const [args, says] of cases) await fail(2, says, args)
    assert.ok(!existsSync(folder))
  })

  test('for the server exits with 1, with all that it says', async (t) => {
    const folder = newFolder(t)
    await fail(1, 'no cluster "nope"', ['nope', ...HTTPS])
    await fail(1, 'no cluster "nope"', ['nope', ...HTTPS, '--output-dir', folder])
    const bad = ['--interval', 'soon', '--flavor', 'sweet', '--token-secret', 'A B', '--cert-secret', '']
    await fail(
      1,
      /--flavor must be one of concrete, identity, not "sweet"\n.*--interval must be a duration[\s\S]*--token-secret[\s\S]*--cert-secret/,
      ['one', ...HTTPS, ...bad],
    )
    await fail(1, '--external-url must be where clusters reach the service', [
      'one',
      '--external-url',
      'fleet',
    ])
    await fail(1, '--selector', ['--selector', '!!', '--output-dir', folder])
    await fail(1, 'HTTP 401', ['one'], { env: { FLUX_API_TOKEN: 'wrong' } })
    const readOnly = await start(t, { mode: 'read-only' })
    await fail(1, 'HTTP 404', ['one', ...HTTPS], { url: readOnly.url })
  })

  test('on the way exits with 3', async () => {
    await fail(3, 'cannot reach http://127.0.0.1:9/', ['one'], { url: 'http://127.0.0.1:9' })
  })
})

test('the help tells what a bundle is, how it is applied, and every flag', async () => {
  const [help, same] = await Promise.all([
    cli(['bootstrap', '--help'], { url: service.url }),
    cli(['help', 'bootstrap'], { url: service.url }),
  ])
  assert.deepEqual([help.code, help.stderr], [0, ''])
  assert.equal(same.stdout, help.stdout)
  for (const part of [
    'bootstrap [options] [cluster]',
    '--selector <selector>',
    '--output-dir <folder>',
    '--flavor <flavor>',
    '--interval <duration>',
    '--external-url <url>',
    '--token-secret <name>',
    '--with-token',
    '--token-grace <duration>',
    '--cert-secret <name>',
    '--no-flux-instance',
    '| kubectl apply -f -',
    'internal-api-token',
  ])
    assert.ok(help.stdout.includes(part), part)
  const root = await cli(['--help'], { url: service.url })
  assert.match(root.stdout, /^ {2}bootstrap .*phone home/m)
})
