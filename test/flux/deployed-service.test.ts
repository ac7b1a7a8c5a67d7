// The pods of deploy/, run as processes: their environment and their files, asked as the kubelet, Flux and Helm would.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { request as plainRequest } from 'node:http'
import { type RequestOptions, request as tlsRequest } from 'node:https'
import { connect } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { createAuthority } from '../certificates.ts'
import { spawnService, temporaryFolder, waitFor } from '../service.ts'
import { required } from './chart-values.ts'
import {
  type Any,
  CASES,
  deployed,
  environmentOf,
  listenersOf,
  ofKind,
  podsOf,
  portOf,
  type Rendered,
  template,
} from './rendered-deployments.ts'
import { parseObjects } from './tools.ts'

const DNS_NAME = 'demo-cluster-01.k8s.example.com'
const POLL = `/api/v2/flux/clusters/${DNS_NAME}/platform-components`
const FOLDERS = /\/(?:etc|var\/lib)\/flux-resourceset/g

const servers = await createAuthority('servers')
const clients = await createAuthority('clients')
const serving = await servers.issue({ dnsNames: ['fleet.example.com', 'localhost'] })
const shown = await clients.issue({ dnsNames: [DNS_NAME], server: false })
const SECRETS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'flux-resourceset-tokens': { AUTH_TOKEN: 'a-token-to-read', CRUD_AUTH_TOKEN: 'a-token-to-write' },
  'flux-resourceset-tls': { 'tls.crt': serving.cert, 'tls.key': serving.key, 'ca.crt': servers.pem },
  'flux-resourceset-client-ca': { 'ca.crt': clients.pem, 'tls.key': 'the key of the authority' },
}
const tls = { existingSecret: 'flux-resourceset-tls', clientCaSecret: 'flux-resourceset-client-ca' }

/** What the kubelet would mount, below a folder. */
function mountFiles(rendered: Rendered, spec: Any, folder: string): void {
  for (const { name, mountPath } of spec.containers[0].volumeMounts) {
    mkdirSync(join(folder, mountPath), { recursive: true })
    const { secret, projected, configMap } = spec.volumes.find((volume: Any) => volume.name === name)
    const sources = [secret, ...(projected?.sources ?? []).map((source: Any) => source.secret)].filter(
      Boolean,
    )
    const maps = ofKind(rendered, 'ConfigMap').filter(({ metadata }) => metadata.name === configMap?.name)
    for (const { data } of maps)
      for (const [path, text] of Object.entries<string>(data))
        writeFileSync(join(folder, mountPath, path), text)
    for (const { secretName, name, items } of sources)
      for (const { key, path } of items)
        writeFileSync(join(folder, mountPath, path), SECRETS[secretName ?? name]?.[key] as string)
  }
}

interface Deployed {
  readonly rendered: Rendered
  readonly container: Any
  readonly api: number
  /** Asks a port that the container has, as a probe does; undefined when nobody listens or what is there is not HTTP. */
  probe(httpGet: Any): Promise<number | undefined>
}

/** Runs the pod that writes, on free ports. */
async function deploy(t: TestContext, yaml: string): Promise<Deployed> {
  const folder = temporaryFolder(t)
  const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets: [] }
  const [pod] = deployed(rendered)
  const [container] = pod?.spec.containers ?? []
  mountFiles(rendered, pod?.spec, folder)
  const environment = Object.entries(environmentOf(rendered, container)).map(([name, value]) => [
    name,
    value.replaceAll(FOLDERS, (path) => `${folder}${path}`),
  ])
  const service = await spawnService({
    ...Object.fromEntries(environment),
    // Those of the tests give way to the files.
    AUTH_TOKEN: '',
    CRUD_AUTH_TOKEN: '',
    ADMIN_LISTEN_ADDR: '127.0.0.1:0',
    SEED_FILE: join(import.meta.dirname, '../../data/seed.json'),
  })
  t.after(() => service.stop())
  const api = Number(new URL(service.url).port)
  const admin = Number(/"admin_address":\{[^}]*"port":(\d+)/.exec(service.output())?.[1])
  const inPod = listenersOf(rendered, container)
  return {
    rendered,
    container,
    api,
    async probe({ path, port: name, scheme = 'HTTP' }) {
      const port = new Map([
        [inPod.api, api],
        [inPod.admin, admin],
      ]).get(portOf(container, name))
      const send = scheme === 'HTTP' ? plainRequest : tlsRequest
      const sent = send({ port, path, agent: false, rejectUnauthorized: false } as RequestOptions).end()
      const [answer] = await once(sent, 'response').catch(() => [])
      answer?.resume()
      return answer?.statusCode
    },
  }
}

async function askOverTls(port: number, path: string, options: RequestOptions) {
  const sent = tlsRequest({
    port,
    path,
    agent: false,
    servername: 'localhost',
    ca: servers.pem,
    ...options,
  }).end()
  const [answer] = await once(sent, 'response')
  const body = JSON.parse(Buffer.concat(await answer.toArray()).toString())
  return { status: answer.statusCode, body }
}

const probesOf = ({ startupProbe, livenessProbe, readinessProbe }: Any): Any[] =>
  [startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)

const WITH_CERTIFICATES: Record<string, (t: TestContext) => Promise<string>> = {
  'the chart': () => template({ ...required, tls: { ...tls, clientAuth: 'required' } }),
  'the chart with the values of the page': (t) =>
    CASES['the chart with the values of docs/tls-on-kubernetes.md']?.yaml(t) as Promise<string>,
  'the kustomization of the page': (t) =>
    CASES['the kustomization of docs/tls-on-kubernetes.md']?.yaml(t) as Promise<string>,
}
for (const [name, render] of Object.entries(WITH_CERTIFICATES)) {
  test(`${name}: a cluster polls with its certificate, and probes and metrics need none`, async (t) => {
    const { container, api, probe } = await deploy(t, await render(t))
    for (const httpGet of probesOf(container)) assert.equal(await probe(httpGet), 200, httpGet.path)
    const [, port] = container.ports
    assert.equal(await probe({ path: '/metrics', port: port.name }), 200)
    const polled = await askOverTls(api, POLL, shown)
    assert.equal(polled.status, 200)
    assert.ok(polled.body.inputs.length > 0)
    const { via, cluster } = (await askOverTls(api, '/whoami', shown)).body
    assert.deepEqual([via, cluster], ['certificate', 'demo-cluster-01'])
    assert.equal((await askOverTls(api, '/metrics', shown)).status, 404)
    assert.equal(await probe({ path: '/health', port: container.ports[0].name }), undefined)
  })
}

test('whoever takes all connections of the API keeps others out, and gets no pod restarted', async (t) => {
  const extraEnv = [{ name: 'MAX_CONNECTIONS', value: '20' }]
  const { container, api, probe } = await deploy(t, await template({ ...required, extraEnv }))
  const health = { path: '/health', port: container.ports[0].name }
  assert.equal(await probe(health), 200)
  const taken = Array.from({ length: 30 }, () => connect(api, '127.0.0.1').on('error', () => {}))
  t.after(() => taken.forEach((socket) => void socket.destroy()))
  await waitFor('nobody else gets in', async () => (await probe(health)) === undefined)
  for (const httpGet of probesOf(container)) assert.equal(await probe(httpGet), 200, httpGet.path)
})

test('helm test passes with TLS, asked for certificates or not, and notices when there is none', async (t) => {
  for (const clientAuth of ['optional', 'required']) {
    const { rendered, api } = await deploy(t, await template({ ...required, tls: { ...tls, clientAuth } }))
    const [pod] = podsOf(rendered).filter(({ deployment }) => !deployment)
    const plain = await deploy(t, await template(required))
    for (const [port, code] of [
      [api, 0],
      [plain.api, 1],
    ]) {
      for (const { command, env } of pod?.spec.containers ?? []) {
        assert.deepEqual(
          env.map(({ name }: Any) => name),
          ['FLUX_API_URL'],
        )
        assert.match(env[0].value, /^https:\/\/flux-resourceset(-crud)?:443$/)
        const { status, stdout, stderr } = spawnSync(process.execPath, command.slice(1), {
          env: { FLUX_API_URL: `https://127.0.0.1:${port}` },
          encoding: 'utf8',
        })
        assert.equal(status, code, stdout + stderr)
      }
    }
  }
})
