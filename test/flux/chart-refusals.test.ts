// What the chart refuses to render, and how it says so.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { onPostgres, required, secured } from './chart-values.ts'
import { CHART } from './rendered-deployments.ts'
import { run } from './tools.ts'

async function failure(values: object): Promise<string> {
  const args = ['template', 'fleet', CHART, '--values', '-']
  const { code, stderr } = await run('helm', args, { input: JSON.stringify(values) })
  assert.notEqual(code, 0, 'it was rendered')
  return stderr
}

describe('the chart refuses', () => {
  const refused: Record<string, [values: object, message: RegExp]> = {
    'an image from nowhere': [{ auth: required.auth }, /image\.repository is needed: build the image/],
    'no tokens': [
      { image: required.image },
      /set auth\.existingSecret .* or set both auth\.readToken and auth\.writeToken/,
    ],
    'one token': [
      { ...required, auth: { readToken: 'r'.repeat(16) } },
      /set both auth\.readToken and auth\.writeToken/,
    ],
    'one token for everything': [
      { ...required, auth: { readToken: 'r'.repeat(16), writeToken: 'r'.repeat(16) } },
      /use two tokens/,
    ],
    'tokens and a Secret of them': [
      { ...required, auth: { ...required.auth, readToken: 'r'.repeat(16) } },
      /leave out auth\.readToken/,
    ],
    'several pods on SQLite': [
      { ...required, crud: { replicas: 2 } },
      /one file on one volume: set crud\.replicas to 1, or use store postgres/,
    ],
    'several pods in memory': [
      { ...required, store: 'memory', crud: { replicas: 2 } },
      /a fleet of its own in each pod: set crud\.replicas to 1, or use store postgres/,
    ],
    'readers on SQLite': [
      { ...required, readOnly: { replicas: 1 } },
      /leave readOnly\.replicas out, as the one pod answers polls too, or use store postgres/,
    ],
    'readers in memory': [
      { ...required, store: 'memory', readOnly: { replicas: 2 } },
      /leave readOnly\.replicas out, .* or use store postgres/,
    ],
    'PostgreSQL from nowhere': [{ ...required, store: 'postgres' }, /needs database\.host/],
    'PostgreSQL without a password': [
      { ...required, store: 'postgres', database: { host: 'db' } },
      /needs database\.existingSecret: .* under the key password/,
    ],
    'an authority where nothing is encrypted': [
      { ...onPostgres, database: { ...onPostgres.database, sslMode: 'disable' } },
      /sslMode is disable, but database\.caSecret is given/,
    ],
    'a reader without a password': [
      { ...onPostgres, database: { ...onPostgres.database, readOnly: { user: 'reader' } } },
      /database\.readOnly needs both/,
    ],
    'a host that is more than a host': [
      { ...onPostgres, database: { ...onPostgres.database, host: 'fleet:secret@db' } },
      /'\/database\/host'/,
    ],
    'client certificates without TLS': [
      { ...required, tls: { clientCaSecret: 'ca' } },
      /tls\.clientCaSecret, .* need tls\.existingSecret/,
    ],
    'certificates of nobody knows which authority': [
      { ...required, tls: { existingSecret: 'tls', clientAuth: 'required' } },
      /tls\.clientAuth required needs tls\.clientCaSecret/,
    ],
    'an audience without an issuer': [
      { ...required, oidc: { audience: 'fleet' } },
      /oidc needs oidc\.issuer/,
    ],
    'an issuer without an audience': [
      { ...required, oidc: { issuer: 'https://login.example.com' } },
      /oidc\.issuer needs oidc\.audience/,
    ],
    'an issuer without rules': [
      { ...required, oidc: { issuer: 'https://login.example.com', audience: 'fleet' } },
      /oidc\.issuer needs access\.rules, or access\.existingConfigMap/,
    ],
    'an issuer in the clear': [
      { ...required, oidc: { issuer: 'http://login.example.com', audience: 'fleet' } },
      /'\/oidc\/issuer'/,
    ],
    'rules of two kinds': [
      { ...required, access: { rules: secured.access.rules, existingConfigMap: 'mine' } },
      /access\.existingConfigMap and access\.rules are given/,
    ],
    'rules that the service does not know': [
      { ...required, access: { rules: { people: [] } } },
      /'\/access\/rules'.*'people' not allowed/,
    ],
    'an issuer that the NetworkPolicy shuts out': [
      { ...secured, oidc: { issuer: 'https://login.example.com', audience: 'fleet' } },
      /login\.example\.com is outside the cluster: set networkPolicy\.oidc\.to/,
    ],
    'a database that the NetworkPolicy shuts out': [
      { ...onPostgres, database: { ...onPostgres.database, host: 'db.example.com' } },
      /db\.example\.com is outside the cluster: set networkPolicy\.database\.to/,
    ],
    'metrics that the NetworkPolicy shuts in': [
      { ...required, serviceMonitor: { enabled: true } },
      /serviceMonitor\.enabled needs networkPolicy\.adminFrom/,
    ],
    'probes where the API listens': [{ ...required, adminPort: 8080 }, /adminPort is 8080, where the API/],
    'a setting that is given twice': [
      { ...required, extraEnv: [{ name: 'ADMIN_LISTEN_ADDR', value: '0.0.0.0:9090' }] },
      /extraEnv names ADMIN_LISTEN_ADDR, which the chart sets/,
    ],
    'an ingress without a host': [{ ...required, ingress: { enabled: true } }, /needs ingress\.host/],
    'a service account from nowhere': [
      { ...required, serviceAccount: { create: false } },
      /serviceAccount\.name is needed/,
    ],
    'a value that does not exist': [
      { ...required, persistance: { size: '1Gi' } },
      /'persistance' not allowed/,
    ],
    'a value that does not exist, further down': [
      { ...required, persistence: { sise: '1Gi' } },
      /'\/persistence'.*'sise' not allowed/,
    ],
    'a store that does not exist': [
      { ...required, store: 'mysql' },
      /'\/store'.*'sqlite', 'postgres', 'memory'/,
    ],
    'a file that is no YAML file': [
      { ...required, resourceTypes: { types: '' } },
      /'\/resourceTypes'.*'types' not allowed/,
    ],
  }
  for (const [what, [values, message]] of Object.entries(refused)) {
    test(what, async () => assert.match((await failure(values)).replaceAll('\n', ' '), message))
  }

  test('a short token, without showing it', async () => {
    const said = await failure({ ...required, auth: { readToken: 'my-secret', writeToken: 'w'.repeat(16) } })
    assert.match(said, /auth\.readToken needs at least 16 printable ASCII characters/)
    assert.ok(!said.includes('my-secret'))
  })
})
