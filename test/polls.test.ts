import assert from 'node:assert/strict'
import { type AddressInfo, connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import type { Json } from '../src/base/json.ts'
import { openMemoryStore } from '../src/store/memory.ts'
import { READ_TOKEN, smallFleet, startService, type TestService } from './service.ts'
import { withoutDigests } from './without-digests.ts'

const CLUSTERS = '/api/v2/flux/clusters'
const ONE = `${CLUSTERS}/one.k8s.example.com`
const COMPONENTS = `${ONE}/platform-components`
const IDENTITY = '"cluster":{"name":"one","dns":"one.k8s.example.com","environment":"dev"}'
const FLUX = { 'user-agent': 'flux-operator/v0.58.1', connection: 'keep-alive' }

function poll(service: TestService, url: string, headers: Record<string, string> = {}) {
  return service.call('GET', url, { token: READ_TOKEN, headers })
}

async function pollAll(service: TestService, dns = 'one.k8s.example.com'): Promise<string[]> {
  const urls = service.types.delivered.map(({ delivery }) => `${CLUSTERS}/${dns}/${delivery.endpoint}`)
  const answers = await Promise.all(urls.map((url) => poll(service, url)))
  return answers.map(({ text }) => text)
}

function inputIds({ body }: { body: { inputs: { id: string }[] } }): string[] {
  return body.inputs.map(({ id }) => id)
}

/** A fleet whose component answer is well worth compressing. */
function wordyFleet(words = 3000) {
  const fleet = smallFleet()
  const [one, two] = fleet.clusters
  return { ...fleet, clusters: [{ ...one, patches: { a: { motd: 'hello '.repeat(words) } } }, two] }
}

/** Everything that the service sends for one request, as it is on the wire. */
async function exchange(service: TestService, method: string, url: string): Promise<string> {
  const { port } = service.app.server.address() as AddressInfo
  const socket = connect(port, '127.0.0.1')
  socket.write(`${method} ${url} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${READ_TOKEN}\r\n`)
  socket.write('Connection: close\r\n\r\n')
  return text(socket)
}

function pollEncoded(service: TestService, encoding: string) {
  return poll(service, COMPONENTS, { 'accept-encoding': encoding })
}

test('a poll answers catalog defaults with the overrides and patches of the cluster, in the promised order', async () => {
  const service = await startService()
  const { status, text, headers } = await poll(service, COMPONENTS)
  assert.equal(status, 200)
  assert.equal(
    withoutDigests(text),
    '{"inputs":[' +
      `{"id":"a","component_path":"core/a/1.0.0","component_version":"1.0.0","cluster_env_enabled":false,"depends_on":[],"enabled":true,"patches":{"replicas":"2"},${IDENTITY},"source":{"oci_url":"oci://registry.example.com/components","oci_tag":"v1.0.0"}},` +
      `{"id":"b","component_path":"core/b/1.0.0","component_version":"1.0.0","cluster_env_enabled":false,"depends_on":["a"],"enabled":true,"patches":{},${IDENTITY},"source":{"oci_url":"oci://registry.example.com/components","oci_tag":"v2.0.0"}}]}`,
  )
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['content-length'], String(Buffer.byteLength(text)))
  assert.equal(headers['cache-control'], 'no-store')
})

test('namespaces and role bindings are answered with the promised fields in the promised order', async () => {
  const service = await startService()
  const namespaces = await poll(service, `${ONE}/namespaces`)
  assert.equal(
    withoutDigests(namespaces.text),
    `{"inputs":[{"id":"team-a","labels":{"team":"a"},"annotations":{},${IDENTITY}}]}`,
  )
  const rolebindings = await poll(service, `${ONE}/rolebindings`)
  assert.equal(
    withoutDigests(rolebindings.text),
    `{"inputs":[{"id":"admins","role":"cluster-admin","subjects":[{"kind":"Group","name":"admins"}],${IDENTITY}}]}`,
  )
})

/** The digests of an answer by the id of their input, and the one that all inputs share. */
async function digestsOf(service: TestService, url = COMPONENTS) {
  const { body } = await poll(service, url)
  const inputs: { id: string; digest: string; answer_digest: string }[] = body.inputs
  const [answer, ...others] = new Set(inputs.map(({ answer_digest }) => answer_digest))
  assert.deepEqual(others, [], 'inputs differ in the digest of their answer')
  return { answer, inputs: Object.fromEntries(inputs.map(({ id, digest }) => [id, digest])) }
}

test('every input ends with its own digest and that of the answer, 16 lower-case hexadecimal digits each', async () => {
  const service = await startService()
  for (const text of await pollAll(service)) {
    const { inputs } = JSON.parse(text)
    assert.ok(inputs.length > 0)
    for (const input of inputs) {
      assert.deepEqual(Object.keys(input).slice(-2), ['digest', 'answer_digest'])
      assert.match(input.digest, /^[0-9a-f]{16}$/)
      assert.match(input.answer_digest, /^[0-9a-f]{16}$/)
    }
  }
  const { answer, inputs } = await digestsOf(service)
  assert.equal(new Set([answer, inputs.a, inputs.b]).size, 3)
})

test('a changed patch changes the digest of its input and that of the answer, and back again', async () => {
  const service = await startService()
  const first = await digestsOf(service)
  const patch = (replicas: string) => service.call('PUT', '/clusters/one/patches/a', { body: { replicas } })
  await patch('3')
  const changed = await digestsOf(service)
  assert.notEqual(changed.inputs.a, first.inputs.a)
  assert.equal(changed.inputs.b, first.inputs.b)
  assert.notEqual(changed.answer, first.answer)
  await patch('2')
  assert.deepEqual(await digestsOf(service), first)
})

test('the order of inputs changes the digest of the answer and none of an input', async () => {
  const service = await startService()
  const first = await digestsOf(service)
  const platform_components = [{ id: 'b', oci_tag: 'v2.0.0' }, { id: 'a' }]
  await service.call('PATCH', '/clusters/one', { body: { platform_components } })
  const turned = await digestsOf(service)
  assert.deepEqual(turned.inputs, first.inputs)
  assert.notEqual(turned.answer, first.answer)
})

test('what an input does not hold changes no digest; the identity of its cluster changes all', async () => {
  const service = await startService()
  const first = await digestsOf(service)
  await service.call('PATCH', '/clusters/one', { body: { labels: { region: 'eu' } } })
  assert.deepEqual(await digestsOf(service), first)
  await service.call('PATCH', '/clusters/one', { body: { cluster_name: 'uno' } })
  const renamed = await digestsOf(service)
  assert.notEqual(renamed.answer, first.answer)
  for (const id of ['a', 'b']) assert.notEqual(renamed.inputs[id], first.inputs[id])
})

test('a live cluster without assignments gets an empty list', async () => {
  const service = await startService()
  assert.deepEqual(await pollAll(service, 'two.k8s.example.com'), [
    '{"inputs":[]}',
    '{"inputs":[]}',
    '{"inputs":[]}',
  ])
})

test('a change of the catalog reaches every cluster that does not override the changed field', async () => {
  const service = await startService()
  for (const id of ['a', 'b']) {
    const body = { oci_tag: 'v9.0.0', component_path: 'core/new' }
    await service.call('PATCH', `/platform_components/${id}`, { body })
  }
  const { body } = await poll(service, COMPONENTS)
  assert.equal(body.inputs[0].source.oci_tag, 'v9.0.0')
  assert.equal(body.inputs[0].component_path, 'core/new')
  assert.equal(body.inputs[1].source.oci_tag, 'v2.0.0')
  assert.equal(body.inputs[1].component_path, 'core/new')
})

test('inputs keep the order of the references in the cluster document', async () => {
  const service = await startService()
  const references = [{ id: 'c' }, { id: 'a' }, { id: 'b' }]
  await service.call('PATCH', '/clusters/two', { body: { platform_components: references } })
  const url = `${CLUSTERS}/two.k8s.example.com/platform-components`
  const first = await poll(service, url)
  assert.deepEqual(inputIds(first), ['c', 'a', 'b'])
  assert.equal((await poll(service, url)).text, first.text)
})

test('equal documents give equal bytes, whatever way and whatever key order led to them', async () => {
  const seeded = await startService()
  const fleet = smallFleet()
  const made = await startService({ fleet: { ...fleet, clusters: [] } })
  const created = await made.call('POST', '/clusters', {
    body: {
      patches: {},
      environment: 'dev',
      cluster_dns: 'one.k8s.example.com',
      platform_components: [{ enabled: false, id: 'a', oci_tag: 'v0.0.1' }],
      cluster_name: 'one',
      id: 'one',
    },
  })
  assert.equal(created.status, 201)
  await made.call('PUT', '/clusters/one/rolebindings/admins', { body: {} })
  await made.call('PUT', '/clusters/one/namespaces/team-a', { body: {} })
  await made.call('PUT', '/clusters/one/platform_components/b', { body: { oci_tag: 'v2.0.0', id: 'b' } })
  await made.call('PATCH', '/clusters/one/platform_components/a', { body: { oci_tag: null, enabled: true } })
  await made.call('PUT', '/clusters/one/patches/a', { body: { replicas: '2' } })
  assert.deepEqual(await pollAll(made), await pollAll(seeded))
})

test('a service started anew on the same store answers the same bytes', async () => {
  const store = openMemoryStore()
  const first = await startService({ store })
  await first.call('PUT', '/clusters/one/platform_components/c', { body: { enabled: false } })
  await first.call('PUT', '/clusters/one/patches/c', { body: { z: '1', a: '2' } })
  const second = await startService({ store })
  assert.deepEqual(await pollAll(second), await pollAll(first))
})

test('patches keep the order in which they were stored', async () => {
  const service = await startService()
  await service.call('PUT', '/clusters/one/patches/a', { body: { zebra: '1', ape: '2', mole: '3' } })
  const { text } = await poll(service, COMPONENTS)
  assert.match(text, /"patches":\{"zebra":"1","ape":"2","mole":"3"\}/)
})

test('an unknown DNS name is 404 and never an empty list', async () => {
  const service = await startService()
  for (const dns of ['nobody.k8s.example.com', 'one', '__proto__', 'constructor', 'x'.repeat(299)]) {
    const { status, body } = await poll(service, `${CLUSTERS}/${dns}/platform-components`)
    assert.equal(status, 404, dns)
    assert.equal(body.error, 'not_found')
    assert.equal(body.inputs, undefined)
  }
})

test('an unknown endpoint is 404 and names the known ones', async () => {
  const service = await startService()
  for (const endpoint of ['helm-releases', 'platform_components', '__proto__', 'constructor']) {
    const { status, body } = await poll(service, `${ONE}/${endpoint}`)
    assert.equal(status, 404, endpoint)
    assert.equal(body.error, 'not_found')
    assert.match(body.message, /platform-components/)
  }
})

test('look-ups of a DNS name ignore its case and a trailing dot', async () => {
  const service = await startService()
  const { text } = await poll(service, COMPONENTS)
  for (const dns of ['ONE.K8S.Example.COM', 'one.k8s.example.com.', 'One.k8s.example.com.']) {
    const answer = await poll(service, `${CLUSTERS}/${dns}/platform-components`)
    assert.equal(answer.status, 200, dns)
    assert.equal(answer.text, text)
  }
  await service.call('PATCH', '/clusters/two', { body: { cluster_dns: 'Two.K8s.Example.com' } })
  assert.equal((await poll(service, `${CLUSTERS}/two.k8s.example.com/namespaces`)).status, 200)
})

test('a cluster that changes its DNS name is found under the new one only', async () => {
  const service = await startService()
  const before = await poll(service, `${ONE}/namespaces`)
  await service.call('PATCH', '/clusters/one', { body: { cluster_dns: 'uno.k8s.example.com' } })
  assert.equal((await poll(service, `${ONE}/namespaces`)).status, 404)
  const { text } = await poll(service, `${CLUSTERS}/uno.k8s.example.com/namespaces`)
  const renamed = before.text.replace('one.k8s.example.com', 'uno.k8s.example.com')
  assert.equal(withoutDigests(text), withoutDigests(renamed))
  assert.notEqual(text, renamed)
})

test('HEAD answers the headers of GET without a body', async () => {
  const service = await startService()
  for (const url of [COMPONENTS, CLUSTERS, `${CLUSTERS}/nobody.example.com/namespaces`]) {
    const get = await poll(service, url)
    const head = await service.call('HEAD', url, { token: READ_TOKEN })
    assert.equal(head.status, get.status)
    const sent = await exchange(service, 'HEAD', url)
    assert.match(sent, /^HTTP\/1\.1 \d{3} /)
    assert.equal(sent.indexOf('\r\n\r\n'), sent.length - 4, sent)
    assert.equal(get.headers['content-length'], String(get.bytes.length))
    for (const name of ['content-length', 'content-type', 'etag', 'cache-control']) {
      assert.equal(head.headers[name], get.headers[name], name)
    }
  }
})

test('an answer is 304 only for a caller that shows its ETag', async () => {
  const service = await startService()
  for (const url of [COMPONENTS, CLUSTERS]) {
    const { headers, status } = await poll(service, url)
    const etag = String(headers.etag)
    assert.equal(status, 200)
    assert.match(etag, /^"[^"]+"$/)
    for (const tags of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const again = await poll(service, url, { 'if-none-match': tags })
      assert.equal(again.status, 304, tags)
      assert.equal(again.text, '')
      assert.equal(again.headers.etag, etag)
    }
    assert.equal((await poll(service, url)).status, 200)
    assert.equal((await poll(service, url, { 'if-none-match': '"other"' })).status, 200)
  }
})

test('the ETag changes with the answer, and not with what the answer does not hold', async () => {
  const service = await startService()
  const etag = async () => (await poll(service, COMPONENTS)).headers.etag
  const first = await etag()
  await service.call('PATCH', '/clusters/two', { body: { labels: { region: 'eu' } } })
  await service.call('PATCH', '/platform_components/c', { body: { oci_tag: 'v1.0.1' } })
  assert.equal(await etag(), first)
  await service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v1.0.1' } })
  assert.notEqual(await etag(), first)
})

test('one ETag never stands for two answers of a URL, whatever happens to the cluster', async () => {
  const service = await startService()
  const named = { cluster_name: 'three', cluster_dns: 'one.k8s.example.com', environment: 'qa' }
  const seen = new Map<string, string>()
  const writes: [string, string, Json?][] = [
    ['PATCH', '/platform_components/a', { oci_tag: 'v1.0.1' }],
    ['PATCH', '/platform_components/a', { oci_tag: 'v1.0.0' }],
    ['PATCH', '/clusters/one/patches/a', { replicas: '3' }],
    ['PUT', '/clusters/one/patches/a', { x: '1', y: '2' }],
    ['PUT', '/clusters/one/patches/a', { x: '2', y: '1' }],
    ['PUT', '/clusters/one/patches/b', { x: '2', y: '1' }],
    ['DELETE', '/clusters/one/patches/a'],
    ['PATCH', '/clusters/one', { platform_components: [{ id: 'b', oci_tag: 'v2.0.0' }, { id: 'a' }] }],
    ['PATCH', '/clusters/one', { platform_components: [{ id: 'b' }, { id: 'a', oci_tag: 'v2.0.0' }] }],
    ['PATCH', '/clusters/one', { platform_components: [{ id: 'b' }] }],
    ['PATCH', '/clusters/one/platform_components/b?confirm=removals', { enabled: false }],
    ['PUT', '/clusters/one/platform_components/a', {}],
    ['PUT', '/clusters/one/platform_components/c', {}],
    ['DELETE', '/clusters/one/platform_components/c'],
    ['DELETE', '/platform_components/c'],
    ['PATCH', '/clusters/one', { cluster_name: 'uno' }],
    ['DELETE', '/clusters/one'],
    ['POST', '/clusters', { id: 'three', ...named, platform_components: [{ id: 'b' }] }],
    ['DELETE', '/clusters/three'],
    ['DELETE', '/clusters/three?purge=true'],
    ['POST', '/clusters/one/restore'],
    ['DELETE', '/platform_components/a?cascade=true&confirm=removals'],
  ]
  for (const [method, url, body] of writes) {
    assert.ok((await service.call(method, url, { body })).status < 300, `${method} ${url}`)
    for (const polled of [COMPONENTS, CLUSTERS]) {
      const { headers, text } = await poll(service, polled)
      const key = `${polled} ${headers.etag}`
      assert.equal(seen.get(key) ?? text, text, `${method} ${url}`)
      seen.set(key, text)
    }
  }
  assert.ok(seen.size >= 20, `${seen.size}`)
})

test('an answer worth it is compressed for a caller that takes gzip, and holds the same bytes', async () => {
  const service = await startService({ fleet: wordyFleet() })
  const plain = await pollEncoded(service, 'identity')
  assert.equal(plain.headers['content-encoding'], undefined)
  assert.match(String(plain.headers.vary), /accept-encoding/i)
  for (const encoding of [
    'gzip',
    'deflate, gzip',
    'GZIP',
    'gzip;q=0.5',
    'gzip;q=0.001',
    'gzip;q=1.',
    'gzip ; q=1.0, br',
  ]) {
    const zipped = await pollEncoded(service, encoding)
    assert.equal(zipped.headers['content-encoding'], 'gzip', encoding)
    assert.ok(zipped.bytes.length < plain.bytes.length / 2)
    assert.equal(zipped.headers['content-length'], String(zipped.bytes.length))
    assert.deepEqual(gunzipSync(zipped.bytes), plain.bytes)
    assert.notEqual(zipped.headers.etag, plain.headers.etag)
  }
})

test('an answer stays plain for a caller that does not take gzip', async () => {
  const service = await startService({ fleet: wordyFleet() })
  const plain = await pollEncoded(service, 'identity')
  const never = ['gzip;q=0', 'gzip;q=0.0', 'gzip; q=0.000, identity', 'gzip;q=0.', 'br', 'gzipped', '']
  const beyond = ['gzip;q=0.0001', 'gzip;q=1.0000', 'gzip;q=1.001', `gzip${', br'.repeat(250)}`]
  for (const encoding of [...never, ...beyond]) {
    const answer = await pollEncoded(service, encoding)
    assert.equal(answer.headers['content-encoding'], undefined, encoding)
    assert.deepEqual(answer.bytes, plain.bytes)
  }
})

test('an answer that arrives in one round trip is not compressed: that would be most of the work of a poll', async () => {
  for (const words of [0, 1000, 2200]) {
    const service = await startService({ fleet: wordyFleet(words) })
    const answer = await pollEncoded(service, 'gzip')
    assert.equal(answer.headers['content-encoding'], undefined, `${words}`)
    assert.ok(answer.bytes.length < 14 * 1024)
    assert.equal(answer.body.inputs.length, 2)
  }
})

test('an answer too long to be compressed between two polls holds the same bytes', async () => {
  const service = await startService({ fleet: wordyFleet(20_000) })
  const plain = await pollEncoded(service, 'identity')
  const zipped = await pollEncoded(service, 'gzip')
  assert.equal(zipped.headers['content-encoding'], 'gzip')
  assert.equal(zipped.headers['content-length'], String(zipped.bytes.length))
  assert.deepEqual(gunzipSync(zipped.bytes), plain.bytes)
})

test('a compressed answer is 304 for a caller that shows its ETag', async () => {
  const service = await startService({ fleet: wordyFleet() })
  const { headers } = await pollEncoded(service, 'gzip')
  const again = await poll(service, COMPONENTS, {
    'accept-encoding': 'gzip',
    'if-none-match': String(headers.etag),
  })
  assert.equal(again.status, 304)
  assert.equal(again.headers.etag, headers.etag)
})

test('the Flux Operator, which leaves its connections idle, is told that the connection closes', async () => {
  const service = await startService()
  for (const url of [COMPONENTS, CLUSTERS]) {
    assert.equal((await poll(service, url, FLUX)).headers.connection, 'close', url)
    const curl = await poll(service, url, { ...FLUX, 'user-agent': 'curl/8.0' })
    assert.notEqual(curl.headers.connection, 'close', url)
  }
})

test('a proxy, whose connections serve many clusters, keeps the one that a poll of Flux came by', async () => {
  const service = await startService()
  for (const added of [{ 'x-forwarded-for': '10.0.0.7' }, { via: '1.1 proxy' }]) {
    const { status, headers } = await poll(service, COMPONENTS, { ...FLUX, ...added })
    assert.equal(status, 200)
    assert.notEqual(headers.connection, 'close', Object.keys(added).join())
  }
})

test('the connection closes for the Flux Operator on refusals and not-modified answers too', async () => {
  const service = await startService()
  const answers = {
    'not modified': await poll(service, COMPONENTS, { ...FLUX, 'if-none-match': '*' }),
    'unknown cluster': await poll(service, `${CLUSTERS}/nobody.example.com/namespaces`, FLUX),
    'unknown endpoint': await poll(service, `${ONE}/nope`, FLUX),
    'no token': await service.call('GET', COMPONENTS, { token: null, headers: FLUX }),
  }
  for (const [name, { headers }] of Object.entries(answers)) assert.equal(headers.connection, 'close', name)
})

test('polls ignore query parameters that they do not know', async () => {
  const service = await startService()
  for (const url of [COMPONENTS, `${ONE}/namespaces`, CLUSTERS]) {
    const { text } = await poll(service, url)
    for (const query of ['cache=0', 'foo=1&foo=2', '__proto__=1', '%zz=%zz', '&&=']) {
      const answer = await poll(service, `${url}?${query}`)
      assert.equal(answer.status, 200, query)
      assert.equal(answer.text, text)
    }
  }
  const { text } = await poll(service, COMPONENTS)
  for (const query of ['limit=abc', 'offset=1', 'environment=prod', 'limit=0']) {
    assert.equal((await poll(service, `${COMPONENTS}?${query}`)).text, text, query)
  }
})

test('the list of clusters holds every live cluster with its promised fields, ordered by id', async () => {
  const service = await startService()
  const { status, text, headers } = await poll(service, CLUSTERS)
  assert.equal(status, 200)
  assert.equal(
    text,
    '{"inputs":[' +
      '{"id":"one","cluster_name":"one","cluster_dns":"one.k8s.example.com","environment":"dev"},' +
      '{"id":"two","cluster_name":"two","cluster_dns":"two.k8s.example.com","environment":"prod"}]}',
  )
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['content-length'], String(Buffer.byteLength(text)))
  assert.equal(headers['cache-control'], 'no-store')
})

test('the list of clusters can be narrowed by environment and read in pages', async () => {
  const environments = ['dev', 'prod', 'dev', 'qa', 'dev']
  const clusters = environments.map((environment, i) => ({
    id: `c${i}`,
    cluster_name: `c${i}`,
    cluster_dns: `c${i}.example.com`,
    environment,
  }))
  const service = await startService({ fleet: { clusters } })
  const ids = async (query: string) => inputIds(await poll(service, `${CLUSTERS}?${query}`))
  assert.deepEqual(await ids('environment=dev'), ['c0', 'c2', 'c4'])
  assert.deepEqual(await ids('environment=uat'), [])
  assert.deepEqual(await ids('limit=2'), ['c0', 'c1'])
  assert.deepEqual(await ids('limit=2&offset=3'), ['c3', 'c4'])
  assert.deepEqual(await ids('offset=4'), ['c4'])
  assert.deepEqual(await ids('environment=dev&limit=1&offset=1'), ['c2'])
  assert.deepEqual(await ids('limit=0'), [])
  assert.deepEqual(await ids('offset=99'), [])
})

test('the list of clusters is not cut by a default limit', async () => {
  const clusters = Array.from({ length: 6000 }, (_, i) => ({
    id: `c${i}`,
    cluster_name: `c${i}`,
    cluster_dns: `c${i}.example.com`,
    environment: 'dev',
  }))
  const service = await startService({ fleet: { clusters } })
  assert.equal(inputIds(await poll(service, CLUSTERS)).length, 6000)
})

test('a disabled component stays in the inputs with enabled false', async () => {
  const service = await startService()
  await service.call('PATCH', '/clusters/one/platform_components/a', { body: { enabled: false } })
  const answer = await poll(service, COMPONENTS)
  assert.deepEqual(inputIds(answer), ['a', 'b'])
  assert.equal(answer.body.inputs[0].enabled, false)
  assert.deepEqual(answer.body.inputs[0].patches, { replicas: '2' })
  assert.equal(answer.body.inputs[1].enabled, true)
})

test('nulls of optional fields never reach an answer', async () => {
  const service = await startService()
  const writes = [
    ['PUT', '/namespaces/team-a', { labels: null, annotations: null }],
    ['PUT', '/clusters/one/platform_components/a', { enabled: null, component_path: null, oci_tag: null }],
    ['PUT', '/clusters/one/namespaces/team-a', { labels: null, annotations: null }],
    ['PUT', '/clusters/one/rolebindings/admins', { role: null, subjects: null }],
    [
      'PUT',
      '/rolebindings/admins',
      { role: 'view', subjects: [{ kind: 'User', name: 'u', apiGroup: null, namespace: null }] },
    ],
    ['PATCH', '/platform_components/b', { depends_on: null, cluster_env_enabled: null }],
  ] as const
  for (const [method, url, body] of writes) {
    assert.equal((await service.call(method, url, { body })).status, 200, url)
  }
  const answers = await pollAll(service)
  for (const text of answers) assert.doesNotMatch(text, /null/)
  assert.match(answers.join(), /"subjects":\[\{"kind":"User","name":"u"\}\]/)
  assert.match(answers.join(), /"id":"a","component_path":"core\/a\/1\.0\.0".*"enabled":true/)
})

test('a failure inside is 500 with the request id and no internals, never an empty list', async () => {
  const service = await startService()
  Object.assign(service.engine.state, {
    clusterByDns() {
      throw new Error('the innards')
    },
  })
  const { status, body, headers } = await poll(service, COMPONENTS, { 'x-request-id': 'req-7' })
  assert.equal(status, 500)
  assert.equal(body.error, 'internal_error')
  assert.match(body.message, /req-7/)
  assert.doesNotMatch(JSON.stringify(body), /innards/)
  assert.equal(body.inputs, undefined)
  assert.equal(headers['x-request-id'], 'req-7')
})

test('a refused poll has a request id: that of the caller, or one of its own', async () => {
  const service = await startService()
  const unknown = COMPONENTS.replace('one.', 'nobody.')
  const named = await poll(service, unknown, { 'x-request-id': 'req-8' })
  assert.deepEqual([named.status, named.headers['x-request-id']], [404, 'req-8'])
  const ids = [await poll(service, unknown), await poll(service, unknown)].map(
    ({ headers }) => headers['x-request-id'],
  )
  for (const id of ids) assert.match(String(id), /^\S{8,}$/)
  assert.equal(new Set(ids).size, 2)
})

test('text outside ASCII arrives whole, wherever in an answer it comes from', async () => {
  for (const [what, method, url, body] of [
    ['a value of the cluster', 'PATCH', '/clusters/one/patches/a', { motto: 'größer 🚀' }],
    ['the name of the cluster', 'PATCH', '/clusters/one', { cluster_name: 'größer 🚀' }],
    ['the catalog', 'PATCH', '/platform_components/a', { component_path: 'größer 🚀' }],
    ['an override', 'PATCH', '/clusters/one/platform_components/b', { oci_tag: 'größer 🚀' }],
  ] as const) {
    const service = await startService()
    assert.equal((await service.call(method, url, { body })).status, 200, what)
    const { bytes, headers } = await poll(service, COMPONENTS)
    assert.equal(headers['content-length'], String(bytes.length), what)
    assert.ok(bytes.includes(Buffer.from('größer 🚀', 'utf8')), what)
    JSON.parse(bytes.toString('utf8'))
  }
})
