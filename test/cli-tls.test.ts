// The command line and a service with a private authority, which also wants client certificates.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createAuthority } from './certificates.ts'
import { assertFailed, cli, cliProcess } from './cli-process.ts'
import { smallFleet, spawnService, startUnheld, temporaryFolder } from './service.ts'

test('the flags of TLS verify a private authority and show a client certificate, and without them it says what to do', async (t) => {
  const folder = temporaryFolder(t)
  const authority = await createAuthority('fleet')
  const server = await authority.issue({ ipAddresses: ['127.0.0.1'], server: true })
  const client = await authority.issue({ commonName: 'operator', client: true })
  const write = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content)
    return join(folder, name)
  }
  const ca = write('ca.crt', authority.pem)
  const service = await spawnService({
    STORE_BACKEND: 'memory',
    API_MODE: 'crud',
    SEED_FILE: write('seed.json', JSON.stringify(smallFleet())),
    TLS_CERT_FILE: write('tls.crt', server.cert),
    TLS_KEY_FILE: write('tls.key', server.key),
    TLS_CLIENT_CA_FILE: ca,
    TLS_CLIENT_AUTH: 'required',
  })
  t.after(() => service.stop())
  const url = service.url.replace('http:', 'https:')
  const list = (...flags: string[]) => cliProcess(['cluster', 'list', '-o', 'name', ...flags], { url })
  const shown = ['--client-cert', write('me.crt', client.cert), '--client-key', write('me.key', client.key)]
  const all = 'clusters/one\nclusters/two\n'
  const verified = await list('--ca-file', ca, ...shown)
  assert.deepEqual([verified.code, verified.stdout], [0, all], verified.stderr)
  const unverified = await list('--insecure-skip-tls-verify', ...shown)
  assert.deepEqual([unverified.code, unverified.stdout], [0, all], unverified.stderr)
  const env = { FLUX_API_CA_FILE: ca, FLUX_API_CLIENT_CERT: shown[1], FLUX_API_CLIENT_KEY: shown[3] }
  assert.equal((await cliProcess(['cluster', 'list', '-o', 'name'], { url, env })).stdout, all)
  const system = { SSL_CERT_FILE: ca, SSL_CERT_DIR: folder, NODE_EXTRA_CA_CERTS: '' }
  const bySystem = await cliProcess(['namespace', 'create', 'x', '-o', 'name', ...shown], {
    url,
    env: system,
  })
  assert.deepEqual([bySystem.code, bySystem.stdout], [0, 'namespaces/x\n'], bySystem.stderr)
  assertFailed(await list(...shown), 3, 'nobody that is trusted here has signed its certificate', '--ca-file')
  assertFailed(await list('--ca-file', ca), 3, '--client-cert and --client-key')
  assertFailed(await list('--ca-file', ca, '--client-cert', ca), 2, '--client-cert needs --client-key')
})

test('an issuer of a private authority is trusted with --ca-file, and not without', async (t) => {
  const authority = await createAuthority('people')
  const server = createServer(await authority.issue({ ipAddresses: ['127.0.0.1'], server: true }))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  server.on('request', ({ method }, response) => {
    const discovered = {
      issuer,
      token_endpoint: `${issuer}/token`,
      device_authorization_endpoint: `${issuer}/device`,
    }
    const refused = { error: 'unauthorized_client', error_description: 'not for you' }
    response.writeHead(method === 'GET' ? 200 : 400, { 'content-type': 'application/json' })
    response.end(JSON.stringify(method === 'GET' ? discovered : refused))
  })
  const { url } = await startUnheld(t, { login: { issuer, clientId: 'frs' } })
  const folder = temporaryFolder(t)
  const ca = join(folder, 'ca.crt')
  writeFileSync(ca, authority.pem)
  const env = { HOME: folder, FLUX_API_URL: url }
  const login = (...flags: string[]) => cli(['login', ...flags], { env })
  assertFailed(await login(), 3, `cannot reach the issuer at ${issuer}`, '--ca-file')
  assertFailed(await login('--ca-file', ca), 1, 'unauthorized_client: not for you')
})
