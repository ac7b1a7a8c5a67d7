import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, type RequestOptions, request } from 'node:https'
import { join } from 'node:path'
import { after, before, suite, type TestContext, test } from 'node:test'
import type { Json } from '../src/base/json.ts'
import { readTlsFiles, type TlsFiles } from '../src/http/tls/tls-files.ts'
import { createAuthority, type KeyPair } from './certificates.ts'
import { start } from './every-store.ts'
import {
  READ_TOKEN,
  type ServiceOptions,
  type ServiceProcess,
  smallFleet,
  spawnService,
  temporaryFolder,
  WRITE_TOKEN,
  waitFor,
} from './service.ts'
import { withoutDigests } from './without-digests.ts'

const BASE = '/api/v2/flux/clusters'
const ONE = 'one.k8s.example.com'
const TWO = 'two.k8s.example.com'
const POLL_ONE = `${BASE}/${ONE}/platform-components`
const POLL_TWO = `${BASE}/${TWO}/platform-components`
const MONITORING = 'spiffe://example.com/ns/monitoring/sa/audit'
const DAY_MS = 24 * 60 * 60 * 1000
const YESTERDAY = new Date(Date.now() - DAY_MS)
const TOMORROW = new Date(Date.now() + DAY_MS)

const [authority, otherAuthority] = await Promise.all([createAuthority('fleet'), createAuthority('other')])
const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
const one = await issue({ dnsNames: [ONE] })

function issue(
  options: Parameters<typeof authority.issue>[0],
  by: Pick<typeof authority, 'issue'> = authority,
): Promise<KeyPair> {
  return by.issue({ client: true, ...options })
}

/** The usual fleet, and rules for names that are no cluster's. */
const RULES = `
certificates:
  - { name: "${MONITORING}", role: viewer }
  - { name: "*.agents.example.com", role: cluster, cluster: "*" }
  - { name: "spiffe://example.com/cluster/*", role: cluster, cluster: "*" }
  - { name: ci.example.com, role: editor, selector: environment=dev }
  - { name: namespaces.example.com, role: editor, types: [namespaces] }
  - { name: ops.example.com, role: admin }
  - { name: poller.example.com, role: poller }
`

interface Files extends TlsFiles {
  readonly clientCa: string
  readonly rules: string
  readonly env: Record<string, string>
}

function writeFiles(folder: string): Files {
  const write = (name: string, content: string): string => {
    const path = join(folder, name)
    writeFileSync(path, content)
    return path
  }
  const cert = write('tls.crt', server.cert)
  const key = write('tls.key', server.key)
  const clientCa = write('ca.crt', authority.pem)
  const rules = write('access.yaml', RULES)
  const env = {
    STORE_BACKEND: 'memory',
    API_MODE: 'crud',
    SEED_FILE: write('seed.json', JSON.stringify(smallFleet())),
    TLS_CERT_FILE: cert,
    TLS_KEY_FILE: key,
    TLS_CLIENT_CA_FILE: clientCa,
    ACCESS_FILE: rules,
    MAX_AUTH_FAILURES: '100000',
  }
  return { cert, key, clientCa, clientAuth: 'optional', rules, env }
}

interface Sent extends RequestOptions {
  readonly shows?: KeyPair | undefined
  readonly token?: string
  readonly body?: Json
}

interface Answer {
  readonly status: number | undefined
  readonly text: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  readonly body: any
  readonly reused: boolean
}

/** One request over TLS, on a connection of its own unless there is an agent. */
async function call(
  { url }: { readonly url: string },
  method: string,
  path: string,
  { shows, token, body, ...options }: Sent = {},
): Promise<Answer> {
  const sent = request(url.replace('http:', 'https:') + path, {
    method,
    ca: authority.pem,
    agent: false,
    ...shows,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...options,
  }).end(body === undefined ? undefined : JSON.stringify(body))
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const text = Buffer.concat(await response.toArray()).toString()
  const isJson = response.headers['content-type']?.includes('json') && text !== ''
  return {
    status: response.statusCode,
    text,
    body: isJson ? JSON.parse(text) : undefined,
    reused: sent.reusedSocket,
  }
}

function get(service: { readonly url: string }, path: string, shows?: KeyPair, more: Sent = {}) {
  return call(service, 'GET', path, { shows, ...more })
}

function assertProblem({ status, body, text }: Answer, expected: number, error: string): void {
  assert.deepEqual([status, body?.error], [expected, error], text)
}

/** However it is told: Node ends the connection of a bad certificate, and sends an alert when there is none. */
async function assertNoConnection(asking: Promise<Answer>): Promise<void> {
  await assert.rejects(asking, { code: /^(?:ECONNRESET|EPIPE|EPROTO|ERR_SSL_.*ALERT.*)$/ })
}

function keepAlive(t: TestContext, shows: KeyPair): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ...shows, ca: authority.pem })
  t.after(() => agent.destroy())
  return agent
}

/** A process with these files, gone after the test. */
async function spawn(t: TestContext, more: Record<string, string> = {}) {
  const files = writeFiles(temporaryFolder(t))
  const service = await spawnService({ ...files.env, ...more })
  t.after(() => service.stop('SIGKILL'))
  return { service, files }
}

/** The service in this process, which asks for certificates. */
async function startWithTls(t: TestContext, options: ServiceOptions = {}) {
  const read = readTlsFiles(writeFiles(temporaryFolder(t)))
  assert.ok(read.ok)
  return start(t, { transport: { tls: read.value.options }, ...options })
}

suite('where certificates are optional', () => {
  let service: ServiceProcess
  const cleanings: (() => void)[] = []
  before(async () => {
    const folder = temporaryFolder({ after: (clean) => void cleanings.push(clean) })
    service = await spawnService(writeFiles(folder).env)
  })
  after(async () => {
    await service.stop()
    for (const clean of cleanings) clean()
  })

  test('a certificate with a DNS name of a cluster polls for it, and gets what a token gets', async () => {
    for (const endpoint of ['platform-components', 'namespaces', 'rolebindings']) {
      const answer = await get(service, `${BASE}/${ONE}/${endpoint}`, one)
      assert.equal(answer.status, 200, answer.text)
      const byToken = await get(service, `${BASE}/${ONE}/${endpoint}`, undefined, { token: READ_TOKEN })
      assert.equal(answer.text, byToken.text)
    }
    assert.equal((await call(service, 'HEAD', POLL_ONE, { shows: one })).status, 200)
    const { expires_at, ...who } = (await get(service, '/whoami', one)).body
    assert.deepEqual(who, {
      name: `certificate:${ONE}`,
      via: 'certificate',
      role: 'cluster',
      cluster: 'one',
    })
    assert.ok(Date.parse(expires_at) > Date.now())
  })

  test('a common name counts where there are no other names, and only there', async () => {
    const plain = await issue({ commonName: ONE })
    assert.equal((await get(service, POLL_ONE, plain)).status, 200)
    const beside = await issue({ commonName: ONE, dnsNames: [TWO] })
    assert.equal((await get(service, POLL_TWO, beside)).status, 200)
    assertProblem(await get(service, POLL_ONE, beside), 403, 'forbidden')
    const stranger = await issue({ commonName: ONE, dnsNames: ['stranger.example.com'] })
    assertProblem(await get(service, POLL_ONE, stranger), 401, 'unauthorized')
    const workload = await issue({ commonName: ONE, uris: ['spiffe://example.com/nobody'] })
    assertProblem(await get(service, POLL_ONE, workload), 401, 'unauthorized')
  })

  test('the name of a cluster counts in any case and with the dot of the root', async () => {
    for (const name of ['ONE.K8S.Example.COM', `${ONE}.`, 'One.k8s.example.com.']) {
      for (const shows of [await issue({ dnsNames: [name] }), await issue({ commonName: name })]) {
        assert.equal((await get(service, POLL_ONE, shows)).status, 200, name)
        assert.equal((await get(service, POLL_ONE.replace(ONE, `${ONE.toUpperCase()}.`), shows)).status, 200)
        assertProblem(await get(service, POLL_TWO, shows), 403, 'forbidden')
      }
    }
  })

  test('a letter of another alphabet that looks like one of the name, or whose lower case it is, makes another name', async () => {
    for (const name of [ONE.replace('k', '\u212a'), ONE.replace('e', '\u0435'), ONE.replace('s', '\u017f')]) {
      const shows = await issue({ commonName: name })
      assertProblem(await get(service, POLL_ONE, shows), 401, 'unauthorized')
    }
  })

  test('beside names of nobody the name of a cluster counts, and so does the same one twice', async () => {
    for (const dnsNames of [
      ['agent.example.com', ONE],
      [ONE, 'agent.example.com'],
      [ONE, ONE.toUpperCase(), `${ONE}.`],
    ])
      assert.equal((await get(service, POLL_ONE, await issue({ dnsNames }))).status, 200, dnsNames.join())
  })

  test('a certificate of one cluster gets nothing of any other, known or not, and no list', async () => {
    const known = await get(service, POLL_TWO, one)
    const unknown = await get(service, POLL_TWO.replace(TWO, 'nobody.example.com'), one)
    for (const answer of [known, unknown]) assertProblem(answer, 403, 'forbidden')
    assert.equal(known.text.replace(TWO, 'nobody.example.com'), unknown.text)
    for (const path of [BASE, `${BASE}?limit=1`, '/clusters', '/clusters/one', '/revisions', '/tokens'])
      assertProblem(await get(service, path, one), 403, 'forbidden')
  })

  test('a certificate of a cluster writes nothing and previews nothing', async () => {
    for (const [method, path, body] of [
      ['POST', '/namespaces', { id: 'new' }],
      ['POST', '/namespaces?dry_run=true', { id: 'new' }],
      ['PATCH', '/clusters/one', { environment: 'qa' }],
      ['DELETE', '/clusters/one'],
      ['POST', '/batch', { operations: [] }],
      ['POST', '/tokens', { name: 'mine', role: 'admin' }],
    ] as const) {
      const answer = await call(service, method, path, { shows: one, ...(body && { body: body as Json }) })
      assertProblem(answer, 403, 'forbidden')
    }
  })

  test('open routes take anybody, with a certificate of whatever kind or none', async () => {
    const foreign = await issue({ dnsNames: [ONE] }, otherAuthority)
    for (const shows of [undefined, one, foreign])
      for (const path of ['/health', '/ready', '/metrics', '/openapi.json', '/docs'])
        assert.equal((await get(service, path, shows)).status, 200, path)
  })

  test('without certificate and token nobody is known', async () => {
    for (const path of [POLL_ONE, BASE, '/clusters', '/whoami'])
      assertProblem(await get(service, path), 401, 'unauthorized')
  })

  test('a certificate that is not good is as none: why is in the log, not in the answer', async () => {
    const { text: nobody } = await get(service, POLL_ONE)
    // The answer says that there was something, and not what is wrong with it.
    const refused = nobody.replace('no_credentials', 'credential_refused')
    for (const [shows, why] of [
      [await issue({ dnsNames: [ONE] }, otherAuthority), /not valid: \w+/],
      [await issue({ dnsNames: [ONE] }, await createAuthority('fleet')), /not valid: \w+/],
      [await issue({ dnsNames: [ONE], notAfter: YESTERDAY, notBefore: new Date(0) }), /CERT_HAS_EXPIRED/],
      [await issue({ dnsNames: [ONE], notBefore: TOMORROW }), /CERT_NOT_YET_VALID/],
      [await authority.issue({ dnsNames: [ONE], server: true }), /INVALID_PURPOSE/],
      [await issue({ dnsNames: ['nobody.example.com'] }), /names no cluster: nobody\.example\.com/],
      [await issue({ dnsNames: [`x.${ONE}`] }), /names no cluster/],
      [await issue({ dnsNames: ['*.k8s.example.com'] }), /names no cluster/],
      [await issue({ dnsNames: ['one'] }), /names no cluster: one/],
      [await issue({ commonName: 'one' }), /names no cluster: one/],
      [await issue({ commonName: `${ONE}, x` }), /names no cluster/],
      [await issue({ dnsNames: [ONE, TWO] }), /names more than one cluster/],
      [await issue({ dnsNames: ['x.example.com', TWO, ONE] }), /names more than one cluster/],
    ] as const) {
      const from = service.output().length
      for (const path of [POLL_ONE, '/whoami', '/clusters']) {
        const answer = await get(service, path, shows)
        assertProblem(answer, 401, 'unauthorized')
        assert.equal(answer.text, refused)
      }
      const isLogged = () => why.test(service.output().slice(from))
      await waitFor(`the log says ${why}, and not only ${service.output().slice(from)}`, isLogged)
    }
  })

  test('a certificate without any name is as none', async () => {
    for (const names of [{}, { ipAddresses: ['127.0.0.1'] }]) {
      const from = service.output().length
      assertProblem(await get(service, POLL_ONE, await issue(names)), 401, 'unauthorized')
      await waitFor('the log says so', () => /it has no names/.test(service.output().slice(from)))
    }
  })

  test('a certificate below an intermediate authority is good', async () => {
    const below = await authority.createIntermediate('agents')
    assert.equal((await get(service, POLL_ONE, await issue({ dnsNames: [ONE] }, below))).status, 200)
  })

  test('a token beside a certificate is what counts', async () => {
    const asReader = await get(service, '/whoami', one, { token: READ_TOKEN })
    assert.equal(asReader.body.name, 'reader')
    assert.equal((await get(service, POLL_TWO, one, { token: READ_TOKEN })).status, 200)
    assert.equal((await get(service, '/clusters', one, { token: READ_TOKEN })).status, 200)
    const foreign = await issue({ dnsNames: [ONE] }, otherAuthority)
    assert.equal((await get(service, POLL_ONE, foreign, { token: READ_TOKEN })).status, 200)
  })

  test('a token that is not valid is 401 also beside a good certificate', async () => {
    for (const token of ['wrong', '', 'a.b.c', `${READ_TOKEN}x`])
      for (const path of [POLL_ONE, '/whoami'])
        assertProblem(await get(service, path, one, { token }), 401, 'unauthorized')
    const headers = { authorization: '' }
    assertProblem(await get(service, POLL_ONE, one, { headers }), 401, 'unauthorized')
  })

  test('a SPIFFE id gets the role of its rule: a viewer reads, previews and does not write', async () => {
    const shows = await issue({ uris: [MONITORING] })
    const { name, role, via } = (await get(service, '/whoami', shows)).body
    assert.deepEqual([name, role, via], [`certificate:${MONITORING}`, 'viewer', 'certificate'])
    for (const path of [POLL_ONE, POLL_TWO, BASE, '/clusters', '/revisions'])
      assert.equal((await get(service, path, shows)).status, 200, path)
    const body = { id: 'by-viewer' }
    assertProblem(await call(service, 'POST', '/namespaces', { shows, body }), 403, 'forbidden')
    const preview = await call(service, 'POST', '/namespaces?dry_run=true', { shows, body })
    assert.equal(preview.status, 200, preview.text)
    assertProblem(await get(service, '/tokens', shows), 403, 'forbidden')
  })

  test('a rule with * makes each certificate the cluster that it names', async () => {
    for (const shows of [
      await issue({ dnsNames: ['one.agents.example.com'] }),
      await issue({ uris: ['spiffe://example.com/cluster/one'] }),
      await issue({ commonName: 'one.agents.example.com' }),
    ]) {
      assert.equal((await get(service, '/whoami', shows)).body.cluster, 'one')
      assert.equal((await get(service, POLL_ONE, shows)).status, 200)
      for (const path of [POLL_TWO, BASE, '/clusters'])
        assertProblem(await get(service, path, shows), 403, 'forbidden')
    }
    const stranger = await issue({ dnsNames: ['nobody.agents.example.com'] })
    for (const path of [POLL_ONE, POLL_TWO])
      assertProblem(await get(service, path, stranger), 403, 'forbidden')
    const deeper = await issue({ dnsNames: ['x.one.agents.example.com'] })
    assertProblem(await get(service, POLL_ONE, deeper), 401, 'unauthorized')
  })

  test('a poller polls for all and reads nothing else', async () => {
    const shows = await issue({ dnsNames: ['poller.example.com'] })
    for (const path of [POLL_ONE, POLL_TWO, BASE])
      assert.equal((await get(service, path, shows)).status, 200, path)
    assertProblem(await get(service, '/clusters', shows), 403, 'forbidden')
  })

  test('an editor writes inside its scope, and the audit has the name of the certificate', async () => {
    const shows = await issue({ dnsNames: ['ci.example.com'] })
    const { role, selector } = (await get(service, '/whoami', shows)).body
    assert.deepEqual([role, selector], ['editor', 'environment=dev'])
    const inside = { shows, body: { replicas: '3' } }
    const written = await call(service, 'PATCH', '/clusters/one/patches/a', inside)
    assert.equal(written.status, 200, written.text)
    const [latest] = (await get(service, '/revisions?limit=1', shows)).body
    assert.equal(latest.actor, 'certificate:ci.example.com')
    assert.equal(latest.client_address, '127.0.0.1')
    const outside = await call(service, 'PATCH', '/clusters/two', { shows, body: { labels: { x: 'y' } } })
    assertProblem(outside, 403, 'forbidden')
    assert.match(outside.body.message, /two/)
    const found = await get(service, '/revisions?actor=certificate:ci.example.com', shows)
    assert.equal(found.body.length, 1)
  })

  test('an editor of certain types writes those, and an admin anything', async () => {
    const shows = await issue({ dnsNames: ['namespaces.example.com'] })
    const made = await call(service, 'POST', '/namespaces', { shows, body: { id: 'by-types' } })
    assert.equal(made.status, 201, made.text)
    const beyond = await call(service, 'PATCH', '/platform_components/a', { shows, body: { oci_tag: 'v9' } })
    assertProblem(beyond, 403, 'forbidden')
    const ops = await issue({ dnsNames: ['ops.example.com'] })
    const token = { name: 'by-certificate', role: 'viewer' }
    const minted = await call(service, 'POST', '/tokens', { shows: ops, body: token })
    assert.equal(minted.status, 201, minted.text)
    assert.equal(minted.body.created_by, 'certificate:ops.example.com')
  })

  test('the audit has the name that the role was given for', async () => {
    const shows = await issue({ dnsNames: ['laptop.example.com', 'ops.example.com'] })
    assert.equal((await get(service, '/whoami', shows)).body.name, 'certificate:ops.example.com')
  })

  test('names of two clusters are refused under a rule with * as they are without one', async () => {
    const shows = await issue({ dnsNames: ['one.agents.example.com', 'two.agents.example.com'] })
    for (const path of [POLL_ONE, POLL_TWO])
      assertProblem(await get(service, path, shows), 401, 'unauthorized')
  })
})

// They wait for files to be read again, which takes a second each time.
suite('a process of its own', { concurrency: true }, () => {
  test('where certificates are required there is no connection without a good one', async (t) => {
    const { service } = await spawn(t, { TLS_CLIENT_AUTH: 'required' })
    for (const shows of [
      undefined,
      await issue({ dnsNames: [ONE] }, otherAuthority),
      await issue({ dnsNames: [ONE], notAfter: YESTERDAY, notBefore: new Date(0) }),
      await issue({ dnsNames: [ONE], notBefore: TOMORROW }),
      await authority.issue({ dnsNames: [ONE], server: true }),
    ])
      for (const minVersion of ['TLSv1.2', 'TLSv1.3'] as const)
        for (const path of [POLL_ONE, '/health'])
          await assertNoConnection(
            get(service, path, shows, { token: READ_TOKEN, minVersion, maxVersion: minVersion }),
          )
    for (const minVersion of ['TLSv1.2', 'TLSv1.3'] as const)
      assert.equal((await get(service, POLL_ONE, one, { minVersion, maxVersion: minVersion })).status, 200)
    assertProblem(await get(service, POLL_TWO, one), 403, 'forbidden')
    const stranger = await issue({ dnsNames: ['nobody.example.com'] })
    assertProblem(await get(service, POLL_ONE, stranger), 401, 'unauthorized')
    assert.equal((await get(service, POLL_ONE, stranger, { token: READ_TOKEN })).status, 200)
    assert.equal((await get(service, '/health', stranger)).status, 200)
    assert.equal(await service.stop(), 0)
  })

  test('rules are read again when their file changes, and stay when it turns bad', async (t) => {
    const { service, files } = await spawn(t)
    const shows = await issue({ dnsNames: ['late.example.com'] })
    const agent = keepAlive(t, shows)
    const roleNow = async () => (await get(service, '/whoami', undefined, { agent })).body.role
    assert.equal(await roleNow(), undefined)
    writeFileSync(files.rules, 'certificates: [{ name: late.example.com, role: viewer }]')
    await waitFor('the rule counts, on an open connection too', async () => (await roleNow()) === 'viewer')
    assert.equal((await get(service, '/whoami', await issue({ uris: [MONITORING] }))).status, 401)
    writeFileSync(files.rules, 'certificates: [{ name: late.example.com, role: king }]')
    await waitFor('the log tells of it', () => /ACCESS_FILE.*\/certificates\/0\/role/.test(service.output()))
    assert.equal(await roleNow(), 'viewer')
    writeFileSync(files.rules, 'certificates: [{ name: late.example.com, role: editor }]')
    await waitFor('the mended rule counts', async () => (await roleNow()) === 'editor')
    writeFileSync(files.rules, '{}')
    await waitFor('nothing is left of it', async () => (await roleNow()) === undefined)
  })

  test('with a new authority, certificates of the old one are good no longer', async (t) => {
    const { service, files } = await spawn(t)
    const next = await issue({ dnsNames: [ONE] }, otherAuthority)
    const agent = keepAlive(t, one)
    assert.equal((await get(service, POLL_ONE, undefined, { agent })).status, 200)
    writeFileSync(files.clientCa, authority.pem + otherAuthority.pem)
    await waitFor('both are good', async () => (await get(service, POLL_ONE, next)).status === 200)
    assert.equal((await get(service, POLL_ONE, one)).status, 200)
    writeFileSync(files.clientCa, otherAuthority.pem)
    await waitFor('the old one is out', async () => (await get(service, POLL_ONE, one)).status === 401)
    assert.equal((await get(service, POLL_ONE, next)).status, 200)
    assertProblem(await get(service, POLL_ONE, undefined, { agent }), 401, 'unauthorized')
  })
})

test('a certificate that expires on an open connection is good no longer', async (t) => {
  let now = Date.now()
  const service = await startWithTls(t, { now: () => new Date(now) })
  const agent = keepAlive(t, one)
  assert.equal((await get(service, POLL_ONE, undefined, { agent })).status, 200)
  now += 2 * DAY_MS
  const answer = await get(service, POLL_ONE, undefined, { agent })
  assert.ok(answer.reused)
  assertProblem(answer, 401, 'unauthorized')
})

test('a cluster that is deleted gets an empty list by its certificate, on its open connection too', async (t) => {
  const service = await startWithTls(t)
  const agent = keepAlive(t, one)
  const poll = () => get(service, POLL_ONE, undefined, { agent })
  assert.notDeepEqual((await poll()).body, { inputs: [] })
  const admin = { token: WRITE_TOKEN }
  await call(service, 'DELETE', '/clusters/one', admin)
  for (const answer of [await poll(), await get(service, POLL_ONE, one)]) {
    assert.equal(answer.status, 200)
    assert.deepEqual(answer.body, { inputs: [] })
  }
  assertProblem(await get(service, POLL_TWO, one), 403, 'forbidden')
  assert.ok((await poll()).reused)
  await call(service, 'POST', '/clusters/one/restore', admin)
  assert.notDeepEqual((await poll()).body, { inputs: [] })
  await call(service, 'DELETE', '/clusters/one?purge=true', admin)
  // Never an empty list for whom nobody knows: Flux would delete everything.
  assertProblem(await poll(), 401, 'unauthorized')
})

test('a cluster that is renamed is out with its old name and in with its new one, on an open connection too', async (t) => {
  const service = await startWithTls(t)
  const renamed = 'renamed.k8s.example.com'
  const [old, next] = [keepAlive(t, one), keepAlive(t, await issue({ dnsNames: [renamed] }))]
  const poll = (agent: Agent, dns: string) => get(service, POLL_ONE.replace(ONE, dns), undefined, { agent })
  const { text } = await poll(old, ONE)
  assertProblem(await poll(next, renamed), 401, 'unauthorized')
  const rename = { token: WRITE_TOKEN, body: { cluster_dns: renamed } }
  assert.equal((await call(service, 'PATCH', '/clusters/one', rename)).status, 200)
  const [gone, come] = [await poll(old, ONE), await poll(next, renamed)]
  assertProblem(gone, 401, 'unauthorized')
  assert.equal(come.status, 200)
  assert.equal(withoutDigests(come.text), withoutDigests(text).replaceAll(ONE, renamed))
  assert.ok(gone.reused && come.reused)
})

test('a name that another cluster takes over goes with it', async (t) => {
  const service = await startWithTls(t)
  const agent = keepAlive(t, one)
  const who = async () => (await get(service, '/whoami', undefined, { agent })).body.cluster
  assert.equal(await who(), 'one')
  const change = (id: string, cluster_dns: string) =>
    call(service, 'PATCH', `/clusters/${id}`, { token: WRITE_TOKEN, body: { cluster_dns } })
  await change('one', 'elsewhere.k8s.example.com')
  await change('two', ONE)
  assert.equal(await who(), 'two')
  assert.deepEqual((await get(service, POLL_ONE, undefined, { agent })).body, { inputs: [] })
})
