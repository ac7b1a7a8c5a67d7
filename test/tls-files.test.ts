import assert from 'node:assert/strict'
import { createPrivateKey } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { Agent, createServer, type RequestOptions, request } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { suite, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { reloadTls } from '../src/http/tls/reload-tls.ts'
import { readTlsFiles, type TlsFiles } from '../src/http/tls/tls-files.ts'
import { createAuthority, type KeyPair } from './certificates.ts'
import { temporaryFolder, waitFor } from './service.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const [authority, otherAuthority] = await Promise.all([createAuthority('ours'), createAuthority('other')])
const pair = await issueServer('first')

function issueServer(commonName: string): Promise<KeyPair> {
  return authority.issue({ commonName, ipAddresses: ['127.0.0.1'], server: true })
}

/** Files of a good pair, unless given otherwise, and of roots for clients. */
function writeFiles(
  folder: string,
  { cert, key, clientCa }: Partial<KeyPair> & { clientCa?: string } = {},
): Required<TlsFiles> {
  const paths = {
    cert: join(folder, 'tls.crt'),
    key: join(folder, 'tls.key'),
    clientCa: join(folder, 'ca.crt'),
  }
  writeFileSync(paths.cert, cert ?? pair.cert)
  writeFileSync(paths.key, key ?? pair.key)
  writeFileSync(paths.clientCa, clientCa ?? authority.pem)
  return { ...paths, clientAuth: 'required' }
}

function problemsOf(files: TlsFiles): readonly string[] {
  const read = readTlsFiles(files)
  assert.ok(!read.ok)
  return read.problems
}

function warningsOf(files: TlsFiles): readonly string[] {
  const read = readTlsFiles(files)
  assert.ok(read.ok, JSON.stringify(read))
  return read.value.warnings
}

test('good files give options, the subject and the expiry', async (t) => {
  const notAfter = new Date('2099-01-02T03:04:05Z')
  const named = await authority.issue({ commonName: 'fleet, "x"', notAfter })
  const files = writeFiles(temporaryFolder(t), named)
  const read = readTlsFiles(files)
  assert.ok(read.ok)
  assert.deepEqual(read.value.certificate, {
    subject: 'CN=fleet\\, \\"x\\"',
    expires: '2099-01-02T03:04:05.000Z',
  })
  assert.deepEqual(read.value.warnings, [])
  const { cert, key, minVersion, requestCert, rejectUnauthorized, ca } = read.value.options
  assert.deepEqual({ cert, key, ca }, { ...named, ca: authority.pem })
  assert.deepEqual([minVersion, requestCert, rejectUnauthorized], ['TLSv1.2', true, true])

  const nameless = await authority.issue({ dnsNames: ['fleet.example.com'] })
  const again = readTlsFiles({ ...writeFiles(temporaryFolder(t), nameless), clientAuth: 'none' })
  assert.ok(again.ok)
  assert.equal(again.value.certificate.subject, 'DNS:fleet.example.com')
  assert.deepEqual([again.value.options.requestCert, again.value.options.ca], [false, undefined])
})

test('PEM is taken as tools write it: CRLF, comments, parameters, several things in one file', async (t) => {
  const sec1 = createPrivateKey(pair.key).export({ type: 'sec1', format: 'pem' })
  const parameters = '-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n'
  for (const [cert, key] of [
    [pair.cert.replaceAll('\n', '\r\n'), pair.key.replaceAll('\n', '\r\n')],
    [`Bag Attributes\n  x\nsubject=CN=x\n${pair.cert}\nmore`, `# a key\n${pair.key}# its end\n`],
    [pair.cert, parameters + sec1],
    [pair.key + pair.cert + authority.pem, pair.cert + pair.key + authority.pem],
  ]) {
    assert.deepEqual(warningsOf(writeFiles(temporaryFolder(t), { cert, key } as KeyPair)), [])
  }
})

test('every file that cannot be read is named, with its setting and the reason', (t) => {
  const folder = temporaryFolder(t)
  const gone = join(folder, 'gone')
  const files = {
    cert: gone,
    key: folder,
    clientCa: join(import.meta.filename, 'x'),
    clientAuth: 'none',
  } as const
  assert.deepEqual(problemsOf(files), [
    `TLS_CERT_FILE ${gone}: there is no such file (ENOENT)`,
    `TLS_KEY_FILE ${folder}: is a folder, not a file (EISDIR)`,
    `TLS_CLIENT_CA_FILE ${files.clientCa}: there is no such file (ENOTDIR)`,
  ])
})

test('a file that may not be read is named', { skip: process.getuid?.() === 0 && 'root reads all' }, (t) => {
  const files = writeFiles(temporaryFolder(t))
  chmodSync(files.key, 0)
  assert.deepEqual(problemsOf(files), [`TLS_KEY_FILE ${files.key}: this process may not read it (EACCES)`])
})

test('every file that holds something else is named, without what it holds', (t) => {
  const files = writeFiles(temporaryFolder(t), { cert: pair.key, key: pair.cert, clientCa: '' })
  assert.deepEqual(problemsOf(files), [
    `TLS_CERT_FILE ${files.cert}: holds no certificate in PEM`,
    `TLS_KEY_FILE ${files.key}: holds no private key in PEM`,
    `TLS_CLIENT_CA_FILE ${files.clientCa}: holds no certificate in PEM`,
  ])
})

test('a certificate or key that is broken or cut off is named', (t) => {
  const broken = pair.cert.replace(/\n.{10}/, '\n!secret!!!')
  const files = writeFiles(temporaryFolder(t), {
    cert: pair.cert + broken + authority.pem,
    key: pair.key.slice(0, -40),
    clientCa: authority.pem + otherAuthority.pem.slice(0, 200),
  })
  assert.deepEqual(problemsOf(files), [
    `TLS_CERT_FILE ${files.cert}: certificate 2 of 3 is broken`,
    `TLS_KEY_FILE ${files.key}: the private key is broken`,
    `TLS_CLIENT_CA_FILE ${files.clientCa}: certificate 2 of 2 is broken`,
  ])
})

test('an encrypted key is refused, in either form', (t) => {
  const encryption = { format: 'pem', cipher: 'aes-256-cbc', passphrase: 'secret' } as const
  for (const type of ['pkcs8', 'sec1'] as const) {
    const key = String(createPrivateKey(pair.key).export({ type, ...encryption }))
    const files = writeFiles(temporaryFolder(t), { key })
    const why = 'the private key is encrypted: it must be readable without a passphrase'
    assert.deepEqual(problemsOf(files), [`TLS_KEY_FILE ${files.key}: ${why}`])
  }
})

test('a key that is not the one of the certificate is refused', async (t) => {
  const other = await issueServer('other')
  const files = writeFiles(temporaryFolder(t), { key: other.key })
  const mismatch = `TLS_KEY_FILE ${files.key}: does not belong to the certificate in TLS_CERT_FILE ${files.cert}`
  assert.deepEqual(problemsOf(files), [mismatch])

  writeFiles(join(files.cert, '..'), { key: pair.key + other.key })
  assert.deepEqual(problemsOf(files), [`TLS_KEY_FILE ${files.key}: holds 2 private keys in PEM`])

  writeFiles(join(files.cert, '..'), { cert: authority.pem + pair.cert })
  const order = `TLS_CERT_FILE ${files.cert}: the server's own certificate must be the first, not number 2`
  assert.deepEqual(problemsOf(files), [order])
})

test('what OpenSSL would not serve is refused before it is served', async (t) => {
  const files = writeFiles(temporaryFolder(t), await authority.issue({ rsaBits: 1024 }))
  assert.deepEqual(problemsOf(files), [`TLS_CERT_FILE ${files.cert}: cannot be served: ee key too small`])
})

test('clients are asked for certificates only with roots to verify them', async (t) => {
  const intermediate = await authority.createIntermediate('intermediate')
  const { clientCa, ...files } = writeFiles(temporaryFolder(t), { clientCa: intermediate.pem })
  for (const clientAuth of ['optional', 'required'] as const) {
    const required = 'TLS_CLIENT_CA_FILE is required to ask clients for certificates'
    assert.deepEqual(problemsOf({ ...files, clientAuth }), [required])
  }
  assert.deepEqual(warningsOf({ ...files, clientAuth: 'none' }), [])
  const noRoot = `TLS_CLIENT_CA_FILE ${clientCa}: holds no root, a certificate that is its own issuer`
  assert.deepEqual(problemsOf({ ...files, clientCa }), [noRoot])
})

test('certificates out of their time are a warning', async (t) => {
  const past = new Date('2020-01-02T03:04:05Z')
  const future = new Date('2098-01-02T03:04:05Z')
  const expired = await authority.issue({ notBefore: new Date(0), notAfter: past })
  const roots = [
    await createAuthority('early', { notBefore: future, notAfter: new Date('2099-01-01T00:00:00Z') }),
    authority,
  ]
  const clientCa = roots.map(({ pem }) => pem).join('')
  const files = writeFiles(temporaryFolder(t), { ...expired, clientCa })
  assert.deepEqual(warningsOf(files), [
    `TLS_CERT_FILE ${files.cert}: certificate 1 of 1 has expired at 2020-01-02T03:04:05.000Z`,
    `TLS_CLIENT_CA_FILE ${files.clientCa}: certificate 1 of 2 is not valid before 2098-01-02T03:04:05.000Z`,
  ])
})

/** What the server saw of a request, and what its client saw of the server. */
interface Seen {
  readonly authorized: boolean
  readonly error: string | null
  readonly client: string | null
  readonly server: string
  readonly protocol: string | null
  readonly reused: boolean
  readonly localPort: number | undefined
  readonly session: Buffer | undefined
}

/** A server of these files that tells what it sees, and follows them. */
async function startServer(t: TestContext, files: TlsFiles) {
  const read = readTlsFiles(files)
  assert.ok(read.ok, JSON.stringify(read))
  const server = createServer(read.value.options, ({ socket }, response) => {
    const { authorized, authorizationError } = socket as TLSSocket
    const client = (socket as TLSSocket).getPeerCertificate()?.subject?.CN ?? null
    response.end(JSON.stringify({ authorized, error: authorizationError, client }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const lines: { level: string; text: string }[] = []
  const note = (level: string) => (fields: object, message: string) => {
    lines.push({ level, text: `${message}: ${JSON.stringify(fields)}` })
  }
  const log = { info: note('info'), warn: note('warn'), error: note('error') }
  const stop = reloadTls(files, server, log)
  t.after(() => {
    stop()
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    get: (options: RequestOptions = {}) => get({ port, ...options }),
    server,
    lines,
    linesOf: (level: string) => lines.filter((line) => line.level === level).map(({ text }) => text),
  }
}

/** One request, on a connection of its own unless there is an agent. */
async function get(options: RequestOptions): Promise<Seen> {
  const sent = request({ host: '127.0.0.1', ca: authority.pem, agent: false, ...options }).end()
  let session: Buffer | undefined
  sent.once('socket', (socket) => {
    if (sent.reusedSocket) return
    socket.on('session', (bytes: Buffer) => {
      session = bytes
    })
  })
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const socket = response.socket as TLSSocket
  const { localPort } = socket
  // A resumed session of TLS 1.2 tells nothing of the server.
  const server = String(socket.getPeerCertificate()?.subject?.CN)
  const reused = socket.isSessionReused()
  const protocol = socket.getProtocol()
  const seen = JSON.parse(Buffer.concat(await response.toArray()).toString())
  return { ...seen, server, protocol, reused, localPort, session }
}

/** However it is told: Node ends the connection of a bad certificate, and sends an alert when there is none. */
async function assertRefused(asking: Promise<Seen>): Promise<void> {
  await assert.rejects(asking, { code: /^(?:ECONNRESET|EPIPE|EPROTO|ERR_SSL_.*ALERT.*)$/ })
}

const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const

function only(version: 'TLSv1.1' | (typeof VERSIONS)[number]): RequestOptions {
  return { minVersion: version, maxVersion: version }
}

test('TLS 1.2 and 1.3 are served, with intermediate certificates, and TLS 1.1 is not', async (t) => {
  const intermediate = await authority.createIntermediate('intermediate')
  const below = await intermediate.issue({ commonName: 'below', ipAddresses: ['127.0.0.1'] })
  const { get } = await startServer(t, { ...writeFiles(temporaryFolder(t), below), clientAuth: 'none' })
  for (const version of VERSIONS) {
    const { protocol, server, client } = await get(only(version))
    assert.deepEqual([protocol, server, client], [version, 'below', null])
  }
  // OpenSSL offers so old a version only when told not to care.
  const old = get({ ...only('TLSv1.1'), ciphers: 'DEFAULT@SECLEVEL=0' })
  await assert.rejects(old, /alert protocol version/)
})

test('a required certificate must be there, in its time, for clients, and from our authority', async (t) => {
  const { get, server } = await startServer(t, writeFiles(temporaryFolder(t)))
  let requests = 0
  server.on('request', () => requests++)
  const below = await authority.createIntermediate('intermediate')
  const twin = await createAuthority('ours')
  const long = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) }
  for (const version of VERSIONS) {
    for (const good of [authority, below]) {
      const { authorized, client } = await get({
        ...only(version),
        ...(await good.issue({ commonName: 'one' })),
      })
      assert.deepEqual([authorized, client], [true, 'one'])
    }
    const served = requests
    await assertRefused(get(only(version)))
    for (const bad of [
      otherAuthority.issue({ commonName: 'one' }),
      twin.issue({ commonName: 'one' }),
      authority.issue({ commonName: 'one', ...long }),
      authority.issue({ commonName: 'one', notBefore: new Date(Date.now() + DAY_MS / 2) }),
      authority.issue({ commonName: 'one', server: true }),
    ]) {
      await assertRefused(get({ ...only(version), ...(await bad) }))
    }
    assert.equal(requests, served)
  }
})

test('an optional certificate is authorized only when it is good', async (t) => {
  const { get } = await startServer(t, { ...writeFiles(temporaryFolder(t)), clientAuth: 'optional' })
  const long = { notBefore: new Date(Date.now() - 2 * DAY_MS), notAfter: new Date(Date.now() - DAY_MS) }
  const good = await authority.issue({ commonName: 'one' })
  const foreign = await otherAuthority.issue({ commonName: 'one' })
  const expired = await authority.issue({ commonName: 'one', ...long })
  for (const version of VERSIONS) {
    const look = async (shown: Partial<KeyPair>) => {
      const { authorized, error, client } = await get({ ...only(version), ...shown })
      return [authorized, error, client]
    }
    assert.deepEqual(await look(good), [true, null, 'one'])
    assert.deepEqual(await look(foreign), [false, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'one'])
    assert.deepEqual(await look(expired), [false, 'CERT_HAS_EXPIRED', 'one'])
    assert.deepEqual(await look({}), [false, 'UNABLE_TO_GET_ISSUER_CERT', null])
  }
})

test('no session is resumed: its client would stay verified, and every poll would pay for a ticket', async (t) => {
  const files = writeFiles(temporaryFolder(t))
  for (const clientAuth of ['none', 'optional', 'required'] as const) {
    const { get } = await startServer(t, { ...files, clientAuth })
    const shown = await authority.issue({ commonName: 'one' })
    for (const version of VERSIONS) {
      const { session } = await get({ ...only(version), ...shown })
      const again = await get({ ...only(version), ...shown, ...(session && { session }) })
      assert.equal(again.reused, false, `${clientAuth} ${version}`)
    }
  }
})

test('a bad read is tried again without a further change', async (t) => {
  // The watch sees nothing here, as if the second write had come together with the first look.
  t.mock.timers.enable({ apis: ['setInterval'] })
  const next = await issueServer('second')
  const files = { ...writeFiles(temporaryFolder(t)), clientAuth: 'none' } as const
  const read = readTlsFiles(files)
  assert.ok(read.ok)
  writeFileSync(files.cert, next.cert)
  const served: string[] = []
  const server = { on() {}, setSecureContext: ({ cert }: { cert: string }) => void served.push(cert) }
  const log = { info() {}, warn() {}, error() {} }
  t.after(reloadTls(files, server, log))
  assert.deepEqual(served, [])
  writeFileSync(files.key, next.key)
  await waitFor('the pair is served', () => served.length > 0)
  assert.deepEqual(served, [next.cert])
})

/** As Kubernetes mounts a Secret: the files are links into `..data`, itself a link that is switched to a new folder. */
function mountSecret(folder: string, version: number, contents: Readonly<Record<string, string>>): void {
  const data = join(folder, '..data')
  mkdirSync(join(folder, `..${version}`))
  for (const [name, text] of Object.entries(contents)) writeFileSync(join(folder, `..${version}`, name), text)
  symlinkSync(`..${version}`, `${data}_tmp`)
  renameSync(`${data}_tmp`, data)
  if (version > 1) rmSync(join(folder, `..${version - 1}`), { recursive: true })
  else for (const name of Object.keys(contents)) symlinkSync(`..data/${name}`, join(folder, name))
}

suite('files are followed', { concurrency: true }, () => {
  test('under load: no request fails, a connection lives on, new ones see the new certificate', async (t) => {
    const folder = temporaryFolder(t)
    const files = { ...writeFiles(folder), clientAuth: 'none' } as const
    const { get, linesOf } = await startServer(t, files)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const failures: unknown[] = []
    const fresh = new Set<string>()
    const kept = new Set<string>()
    let done = false
    const load = async (ask: () => Promise<unknown>) => {
      while (!done) {
        await ask().catch((error) => failures.push(error))
        await sleep(2)
      }
    }
    const loops = [
      load(async () => fresh.add((await get()).server)),
      load(async () => fresh.add((await get(only('TLSv1.2'))).server)),
      load(async () => kept.add(String((await get({ agent })).localPort))),
    ]
    const names = ['written', 'renamed', 'key first']
    for (const name of names) {
      const { cert, key } = await issueServer(name)
      if (name === 'written') writeFiles(folder, { cert, key })
      for (const [path, text] of [
        [files.key, key],
        [files.cert, cert],
      ] as const) {
        writeFileSync(`${path}.new`, text)
        renameSync(`${path}.new`, path)
        if (name === 'key first') await waitFor('it is told', () => linesOf('error').length > 0)
      }
      await waitFor(`${name} is served`, () => fresh.has(name))
    }
    done = true
    await Promise.all(loops)
    assert.deepEqual(failures, [])
    assert.deepEqual([...fresh], ['first', ...names])
    assert.equal(kept.size, 1)
    assert.equal((await get()).server, 'key first')
  })

  test('half a pair keeps the old one, is told once, and the other half puts it right', async (t) => {
    const files = { ...writeFiles(temporaryFolder(t)), clientAuth: 'none' } as const
    const { get, lines, linesOf } = await startServer(t, files)
    const next = await authority.issue({
      commonName: 'next',
      notBefore: new Date(0),
      notAfter: new Date(DAY_MS),
    })
    const told = (text: string) => linesOf('error').filter((line) => line.includes(text)).length
    writeFileSync(files.cert, next.cert)
    await waitFor('the mismatch is told', () => told('does not belong') > 0)
    assert.equal((await get()).server, 'first')
    rmSync(files.key)
    await waitFor('the missing key is told', () => told('there is no such file') > 0)
    writeFileSync(files.key, next.key.slice(0, 50))
    await waitFor('the broken key is told', () => told('is broken') > 0)
    assert.equal((await get()).server, 'first')
    // Time enough to try again and tell it twice.
    await sleep(1500)
    assert.equal(linesOf('error').length, 3, JSON.stringify(lines))
    writeFileSync(files.key, next.key)
    await waitFor('the pair is served', async () => {
      const { server } = await get({ rejectUnauthorized: false })
      return server === 'next'
    })
    const told1970 = '{"subject":"CN=next","expires":"1970-01-02T00:00:00.000Z"}'
    assert.deepEqual(linesOf('info').at(-1), `TLS certificate loaded: ${told1970}`)
    assert.equal(linesOf('warn').length, 1)
    assert.match(linesOf('warn')[0] ?? '', /certificate 1 of 1 has expired at 1970/)
    // The key's own text is nowhere.
    assert.doesNotMatch(JSON.stringify(lines), new RegExp(next.key.slice(30, 50)))
    assert.ok(readFileSync(files.key, 'utf8').includes(next.key.slice(30, 50)))
  })

  test('as Kubernetes swaps them', async (t) => {
    const folder = temporaryFolder(t)
    mountSecret(folder, 1, { 'tls.crt': pair.cert, 'tls.key': pair.key })
    const files = { cert: join(folder, 'tls.crt'), key: join(folder, 'tls.key'), clientAuth: 'none' } as const
    const { get, linesOf } = await startServer(t, files)
    for (const version of [2, 3]) {
      const { cert, key } = await issueServer(`version ${version}`)
      mountSecret(folder, version, { 'tls.crt': cert, 'tls.key': key })
      await waitFor('it is served', async () => (await get()).server === `version ${version}`)
    }
    assert.equal(linesOf('info').length, 3)
    assert.deepEqual(linesOf('error'), [])
  })

  test('also those that changed before anyone watched', async (t) => {
    const folder = temporaryFolder(t)
    const files = { ...writeFiles(folder), clientAuth: 'none' } as const
    const read = readTlsFiles(files)
    writeFiles(folder, await issueServer('changed'))
    assert.ok(read.ok)
    const served: string[] = []
    const server = { on() {}, setSecureContext: ({ cert }: { cert: string }) => void served.push(cert) }
    t.after(reloadTls(files, server, { info() {}, warn() {}, error() {} }))
    assert.deepEqual(served, [readFileSync(files.cert, 'utf8')])
  })

  for (const clientAuth of ['optional', 'required'] as const) {
    test(`with new roots, clients of the old ones are out: ${clientAuth}`, async (t) => {
      const folder = temporaryFolder(t)
      const { get } = await startServer(t, { ...writeFiles(folder), clientAuth })
      const old = await authority.issue({ commonName: 'old' })
      const next = await otherAuthority.issue({ commonName: 'next' })
      const agent = new Agent({ keepAlive: true, maxSockets: 1 })
      t.after(() => agent.destroy())
      const before = await get({ agent, ...old })
      const sessions = new Map<string, Buffer | undefined>()
      for (const version of VERSIONS) sessions.set(version, (await get({ ...only(version), ...old })).session)
      // Clients of both come in while roots are changed one after the other.
      writeFiles(folder, { clientCa: authority.pem + otherAuthority.pem })
      const comesIn = (shown: KeyPair) =>
        get(shown)
          .then(({ authorized }) => authorized)
          .catch(() => false)
      await waitFor('the new client comes in', () => comesIn(next))
      assert.ok(await comesIn(old))
      writeFiles(folder, { clientCa: otherAuthority.pem })
      await waitFor('the old client is out', async () => !(await comesIn(old)))
      assert.ok(await comesIn(next))
      for (const version of VERSIONS) {
        const session = sessions.get(version)
        for (const resumed of [{}, session && { session }]) {
          const asking = get({ ...only(version), ...old, ...resumed })
          if (clientAuth === 'required') await assertRefused(asking)
          else assert.deepEqual((await asking).authorized, false)
        }
      }
      // The connection from before goes on.
      const after = await get({ agent, ...old })
      assert.deepEqual([after.localPort, after.authorized], [before.localPort, true])
    })
  }
})
