import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { parse } from 'yaml'
import { openMemoryStore } from '../src/store/memory.ts'
import { type Store, StoreError } from '../src/store/store.ts'
import { READ_TOKEN, startService, type TestService } from './service.ts'

const ONE = '/api/v2/flux/clusters/one.k8s.example.com'
const METHODS = ['get', 'put', 'post', 'delete', 'patch', 'options', 'head', 'trace']

function open(service: TestService, url: string) {
  return service.call('GET', url, { token: null })
}

/** A store that can be taken away and given back. */
function breakableStore(): { store: Store; setBroken(broken: boolean): void } {
  const store = openMemoryStore()
  let broken = false
  const guard = () => {
    if (broken) throw new StoreError('the disk is on fire')
  }
  return {
    setBroken(value) {
      broken = value
    },
    store: {
      ...store,
      async head() {
        guard()
        return store.head()
      },
      async commit(base, revision) {
        guard()
        return store.commit(base, revision)
      },
      async history(query) {
        guard()
        return store.history(query)
      },
    },
  }
}

/** The samples of one metric, by their labels as they are written. */
async function samples(service: TestService, name: string): Promise<Record<string, number>> {
  const { text } = await open(service, '/metrics')
  const found: Record<string, number> = {}
  for (const line of text.split('\n')) {
    const [, metric, labels = '', value] = /^(\w+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? []
    if (metric === name) found[labels] = Number(value)
  }
  return found
}

test('health says that the process lives, whatever the store does', async () => {
  const { store, setBroken } = breakableStore()
  const service = await startService({ store })
  setBroken(true)
  assert.equal((await open(service, '/health')).status, 200)
})

test('ready is true when the state is loaded and the store answers', async () => {
  for (const mode of ['read-only', 'crud'] as const) {
    const service = await startService({ mode })
    assert.equal((await open(service, '/ready')).status, 200)
  }
})

test('ready is 503 with the reason while the store does not answer', async () => {
  const { store, setBroken } = breakableStore()
  const service = await startService({ store })
  setBroken(true)
  const { status, body } = await open(service, '/ready')
  assert.equal(status, 503)
  assert.equal(body.error, 'unavailable')
  assert.match(body.message, /disk is on fire/)
  setBroken(false)
  assert.equal((await open(service, '/ready')).status, 200)
})

test('a read-only process whose store does not answer is ready, and says what of it is not', async () => {
  const { store, setBroken } = breakableStore()
  const service = await startService({ mode: 'read-only', store })
  const { paths } = (await open(service, '/openapi.json')).body
  const { schema } = paths['/ready'].get.responses['200'].content['application/json']
  const validate = new Ajv2020({ strict: false }).compile(schema)
  for (const broken of [false, true]) {
    setBroken(broken)
    const { status, body } = await open(service, '/ready')
    assert.deepEqual([status, body.status], [200, broken ? 'degraded' : 'ready'])
    assert.equal(body.reason, broken ? 'the disk is on fire' : undefined)
    assert.ok(validate(body), JSON.stringify(body))
  }
})

test('a store that is away makes writes and histories 503 and stops no poll', async () => {
  const { store, setBroken } = breakableStore()
  const service = await startService({ store })
  const before = await service.call('GET', `${ONE}/platform-components`)
  setBroken(true)
  const write = () => service.call('PATCH', '/platform_components/a', { body: { oci_tag: 'v2' } })
  for (const { status, body, headers } of [await write(), await service.call('GET', '/revisions')]) {
    assert.equal(status, 503)
    assert.equal(body.error, 'unavailable')
    assert.match(String(headers['retry-after']), /^\d+$/)
  }
  const during = await service.call('GET', `${ONE}/platform-components`)
  assert.equal(during.status, 200)
  assert.equal(during.text, before.text)
  assert.equal((await service.call('GET', '/clusters/one')).status, 200)
  setBroken(false)
  assert.equal((await write()).headers['x-revision'], '2')
})

test('while stopping, ready is 503 with the reason, writes are 503 and polls go on', async () => {
  const service = await startService()
  service.engine.drain()
  const ready = await open(service, '/ready')
  assert.equal(ready.status, 503)
  assert.match(ready.body.message, /stopping/)
  assert.equal((await open(service, '/health')).status, 200)
  const write = await service.call('POST', '/namespaces', { body: { id: 'new' } })
  assert.equal(write.status, 503)
  assert.equal(write.body.error, 'unavailable')
  assert.equal((await service.call('GET', `${ONE}/namespaces`)).status, 200)
})

test('polls are counted by endpoint and class of status', async () => {
  const service = await startService()
  const poll = (url: string, headers = {}) => service.call('GET', url, { token: READ_TOKEN, headers })
  await poll(`${ONE}/platform-components`)
  await poll(`${ONE}/platform-components`)
  await poll(`${ONE}/namespaces`, { 'if-none-match': '*' })
  await poll('/api/v2/flux/clusters/nobody.example.com/namespaces')
  await poll('/api/v2/flux/clusters')
  await service.call('GET', `${ONE}/rolebindings`, { token: null })
  assert.deepEqual(await samples(service, 'flux_resourceset_polls_total'), {
    'endpoint="platform-components",code="2xx"': 2,
    'endpoint="namespaces",code="3xx"': 1,
    'endpoint="namespaces",code="4xx"': 1,
    'endpoint="clusters",code="2xx"': 1,
    'endpoint="rolebindings",code="4xx"': 1,
  })
})

test('the time of polls is in a histogram by endpoint', async () => {
  const service = await startService()
  for (let i = 0; i < 3; i++) await service.call('GET', `${ONE}/platform-components`)
  const name = 'flux_resourceset_poll_duration_seconds'
  const endpoint = 'endpoint="platform-components"'
  assert.equal((await samples(service, `${name}_count`))[endpoint], 3)
  assert.ok(((await samples(service, `${name}_sum`))[endpoint] as number) > 0)
  const buckets = await samples(service, `${name}_bucket`)
  assert.equal(buckets[`le="+Inf",${endpoint}`], 3)
  assert.ok(Object.keys(buckets).length > 5)
})

test('what callers make up never becomes a label', async () => {
  const service = await startService()
  await service.call('GET', `${ONE}/made-up-endpoint`)
  await service.call('GET', '/api/v2/flux/clusters/made-up.example.com/namespaces')
  await service.call('GET', '/made-up-type/made-up-id')
  await service.call('GET', '/clusters/made-up')
  await service.call('PUT', '/clusters/one/patches/made-up', { body: {} })
  await service.call('POST', '/namespaces', { body: { id: 'made-up', 'made-up': 1 } })
  await service.call('PATCH', '/made-up', { body: {} })
  await service.call('GET', '/clusters/one', { token: 'made-up', headers: { 'user-agent': 'made-up' } })
  const { text } = await open(service, '/metrics')
  assert.doesNotMatch(text, /made-up/)
  const polls = Object.keys(await samples(service, 'flux_resourceset_polls_total'))
  assert.deepEqual(polls.toSorted(), ['endpoint="namespaces",code="4xx"', 'endpoint="unknown",code="4xx"'])
})

test('writes are counted by what became of them', async () => {
  const service = await startService()
  await service.call('POST', '/namespaces', { body: { id: 'new' } })
  await service.call('POST', '/namespaces', { body: { id: 'new' } })
  await service.call('PATCH', '/clusters/one', { body: { environment: 'dev' } })
  await service.call('PATCH', '/clusters/one/patches/a', { body: { x: '1' } })
  const writes = Object.entries(await samples(service, 'flux_resourceset_writes_total'))
  assert.equal(writes.length, 4)
  for (const [type, result] of [
    ['namespaces', 'done'],
    ['namespaces', 'conflict'],
    ['clusters', 'unchanged'],
    ['patches', 'done'],
  ]) {
    const found = writes.filter(
      ([labels]) => labels.includes(`type="${type}"`) && labels.includes(`result="${result}"`),
    )
    assert.deepEqual(
      found.map(([, count]) => count),
      [1],
    )
  }
})

test('the revision and the number of live clusters can be watched', async () => {
  const service = await startService()
  await service.call('DELETE', '/clusters/two')
  assert.deepEqual(await samples(service, 'flux_resourceset_revision'), { '': 2 })
  assert.deepEqual(await samples(service, 'flux_resourceset_clusters'), { '': 1 })
})

test('metrics come in the format of Prometheus, with those of the process', async () => {
  const service = await startService()
  const { status, headers, text } = await open(service, '/metrics')
  assert.equal(status, 200)
  assert.match(String(headers['content-type']), /^text\/plain/)
  assert.match(text, /^# TYPE flux_resourceset_store_errors_total counter$/m)
  assert.match(text, /^process_resident_memory_bytes \d/m)
  assert.match(text, /^process_cpu_seconds_total \d/m)
})

interface Operation {
  readonly operationId?: string
  readonly summary?: string
  readonly tags?: readonly string[]
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Readonly<Record<string, unknown>> }
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly $ref?: string }>>
  readonly security?: readonly Readonly<Record<string, unknown>>[]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly schema?: object
}

type PathItem = { readonly parameters?: readonly Parameter[] } & Readonly<Record<string, Operation>>

interface Described {
  readonly path: string
  readonly method: string
  readonly operation: Operation
  readonly parameters: readonly Parameter[]
}

async function describeApi(service: TestService) {
  const document = (await open(service, '/openapi.json')).body
  const paths = Object.entries(document.paths as Record<string, PathItem>)
  const operations = paths.flatMap(([path, item]): Described[] =>
    METHODS.filter((method) => Object.hasOwn(item, method)).map((method) => {
      const operation = item[method] as Operation
      return {
        path,
        method,
        operation,
        parameters: [...(item.parameters ?? []), ...(operation.parameters ?? [])],
      }
    }),
  )
  return { document, paths: paths.map(([path]) => path), operations }
}

/** A real path of the small fleet for one of the description. */
function fill(path: string): string {
  const values: Record<string, string> = {
    '{dns}': 'one.k8s.example.com',
    '{cluster}': 'one',
    '{revision}': '1',
    '{endpoint}': 'namespaces',
  }
  const ids: Record<string, string> = {
    platform_components: 'a',
    namespaces: 'team-a',
    rolebindings: 'admins',
  }
  const id = ids[path.split('/')[1] ?? ''] ?? 'one'
  return path.replaceAll(/\{\w+\}/g, (name) => values[name] ?? id)
}

/** The paths of the application's own router, with `{}` for every parameter. */
function routedPaths(service: TestService): string[] {
  const paths: string[] = []
  const above: string[] = []
  for (const line of service.app.printRoutes({ commonPrefix: false }).split('\n')) {
    const [, indent = '', segment = ''] = /^([│├└─\s]*)(\S+) \(/.exec(line) ?? []
    if (segment === '') continue
    const depth = indent.length / 4
    above.splice(depth - 1, above.length, segment)
    paths.push(above.join(''))
  }
  return paths.map((path) => path.replaceAll(/:\w+(\|:\w+)*/g, '{}'))
}

test('metrics that are served elsewhere are not in the description', async () => {
  for (const hasAdminPort of [false, true]) {
    const service = await startService({ hasAdminPort })
    const { paths } = (await open(service, '/openapi.json')).body
    assert.equal('/metrics' in paths, !hasAdminPort)
    assert.ok('/ready' in paths)
    assert.equal((await open(service, '/metrics')).status, hasAdminPort ? 404 : 200)
  }
})

test('the description is the same in JSON and in YAML', async () => {
  for (const mode of ['read-only', 'crud'] as const) {
    const service = await startService({ mode })
    const json = await open(service, '/openapi.json')
    const yaml = await open(service, '/openapi.yaml')
    assert.match(String(json.headers['content-type']), /^application\/json/)
    assert.match(String(yaml.headers['content-type']), /yaml/)
    assert.deepEqual(parse(yaml.text), json.body)
    assert.match(json.body.openapi, /^3\.1\./)
    assert.ok(json.body.info.title)
    assert.ok(json.body.info.version)
  }
})

test('every route of the service is described', async () => {
  const service = await startService()
  const { paths } = await describeApi(service)
  const described = new Set(paths.map((path) => path.replaceAll(/\{\w+\}/g, '{}')))
  const routed = routedPaths(service).filter((path) => !path.startsWith('/docs'))
  assert.ok(routed.includes('/clusters/{}/patches/{}'))
  const polls = '/api/v2/flux/clusters/{}/{}'
  assert.deepEqual(
    routed.filter((path) => path !== polls && !described.has(path)),
    [],
  )
  for (const { delivery } of service.types.delivered) {
    assert.ok(paths.includes(`/api/v2/flux/clusters/{dns}/${delivery.endpoint}`), delivery.endpoint)
  }
})

test('every described path has exactly the described methods', async () => {
  const service = await startService()
  const { paths, operations } = await describeApi(service)
  for (const path of paths) {
    const { status, headers } = await service.call('OPTIONS', fill(path))
    assert.equal(status, 405, path)
    const allowed = String(headers.allow).toLowerCase().split(', ')
    const described = operations.filter((other) => other.path === path).map(({ method }) => method)
    assert.deepEqual(allowed.filter((method) => method !== 'head').toSorted(), described.toSorted(), path)
  }
})

test('in read-only mode only what is served is described', async () => {
  const service = await startService({ mode: 'read-only' })
  const { operations, paths } = await describeApi(service)
  const reports = operations.filter(({ method }) => method !== 'get').map(({ path }) => path)
  assert.deepEqual(reports, ['/api/v2/flux/clusters/{dns}/events', '/reports'])
  for (const path of paths.filter((each) => !reports.includes(each))) {
    // There are no rollouts, holds and freezes: their routes say so.
    const expected = /^\/(?:rollouts|holds|freezes|strategies)\/\{/.test(path) ? 404 : 200
    assert.equal((await service.call('HEAD', fill(path))).status, expected, path)
  }
})

test('every reference in the description leads somewhere', async () => {
  const service = await startService()
  const { document } = await describeApi(service)
  const references: string[] = []
  JSON.stringify(document, (key, value) => {
    if (key === '$ref') references.push(value)
    return value
  })
  assert.ok(references.length > 10)
  for (const reference of new Set(references)) {
    assert.match(reference, /^#\//)
    const steps = reference.slice(2).split('/')
    const target = steps.reduce((node, step) => node?.[step], document)
    assert.equal(typeof target, 'object', reference)
  }
})

test('every operation has an id of its own, a summary, declared tags and described answers', async () => {
  const service = await startService()
  const { document, operations } = await describeApi(service)
  const ids = operations.map(({ operation }) => operation.operationId)
  assert.equal(new Set(ids).size, operations.length)
  const tags = document.tags.map(({ name }: { name: string }) => name)
  assert.equal(new Set(tags).size, tags.length)
  const schemes = Object.keys(document.components.securitySchemes)
  for (const { path, method, operation } of operations) {
    const where = `${method} ${path}`
    assert.match(String(operation.operationId), /^\w+$/, where)
    assert.ok(operation.summary, where)
    for (const tag of operation.tags ?? []) assert.ok(tags.includes(tag), where)
    const responses = Object.entries(operation.responses ?? {})
    assert.ok(responses.length > 0, where)
    for (const [code, { description, $ref }] of responses) {
      assert.match(code, /^([1-5]\d\d|default)$/)
      assert.ok(description || $ref, `${where} ${code}`)
    }
    const required = (operation.security ?? document.security).flatMap(Object.keys)
    for (const scheme of required) assert.ok(schemes.includes(scheme), where)
    assert.equal(required.length === 0, operation.tags?.includes('operations'), where)
  }
})

test('every parameter of a path is declared, once and as required', async () => {
  const service = await startService()
  const { operations } = await describeApi(service)
  for (const { path, method, parameters } of operations) {
    const where = `${method} ${path}`
    const names = parameters.map(({ name, in: place }) => `${place} ${name}`)
    assert.equal(new Set(names).size, names.length, where)
    const inPath = parameters.filter((parameter) => parameter.in === 'path')
    const wanted = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
    assert.deepEqual(inPath.map(({ name }) => name).toSorted(), wanted.toSorted(), where)
    assert.ok(
      inPath.every(({ required }) => required === true),
      where,
    )
    for (const parameter of parameters) {
      assert.ok(['path', 'query', 'header'].includes(parameter.in), where)
      assert.equal(typeof parameter.schema, 'object', where)
    }
  }
})

test('the described schemas are valid, and the documents served fit them', async () => {
  const service = await startService()
  const { document, operations } = await describeApi(service)
  const ajv = new Ajv2020({ strict: false, validateFormats: false })
  ajv.addSchema(document, 'openapi')
  for (const name of Object.keys(document.components.schemas)) {
    assert.ok(ajv.validateSchema(document.components.schemas[name]), name)
  }
  const checks: [string, string][] = [
    ['get_clusters', '/clusters/one'],
    ['list_clusters', '/clusters'],
    ['list_platform_components', '/platform_components'],
    ['list_namespaces', '/namespaces'],
    ['list_rolebindings', '/rolebindings'],
    ['list_revisions', '/revisions'],
    ['get_revision', '/revisions/1'],
    ['history_clusters', '/clusters/one/history'],
    ['get_assigned_platform_components', '/clusters/one/platform_components/b'],
    ['poll_platform_components', `${ONE}/platform-components`],
    ['poll_clusters', '/api/v2/flux/clusters'],
  ]
  for (const [id, url] of checks) {
    const found = operations.find(({ operation }) => operation.operationId === id)
    assert.ok(found, id)
    const at = [
      'paths',
      found.path,
      found.method,
      'responses',
      '200',
      'content',
      'application/json',
      'schema',
    ]
    const pointer = at.map((step) => encodeURIComponent(step.replaceAll('~', '~0').replaceAll('/', '~1')))
    const validate = ajv.compile({ $ref: `openapi#/${pointer.join('/')}` })
    const { status, body } = await service.call('GET', url)
    assert.equal(status, 200, url)
    assert.ok(validate(body), `${url}: ${ajv.errorsText(validate.errors)}`)
  }
})

test('the browsable description is one page of HTML whose parts all come from the service itself', async () => {
  for (const mode of ['read-only', 'crud'] as const) {
    const service = await startService({ mode })
    const page = await open(service, '/docs')
    assert.equal(page.status, 200)
    assert.match(String(page.headers['content-type']), /^text\/html/)
    const parts = [...page.text.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url]) => url as string)
    assert.ok(parts.some((url) => url.endsWith('.js')))
    assert.ok(parts.some((url) => url.endsWith('.css')))
    for (const url of parts) {
      const resolved = new URL(url, 'http://service.test/docs')
      assert.equal(resolved.host, 'service.test', url)
      const { status, text } = await open(service, resolved.pathname)
      assert.equal(status, 200, url)
      assert.ok(text.length > 0, url)
    }
  }
})

test('the browsable description shows the description that the service serves, and calls nobody else', async () => {
  const service = await startService()
  const script = (await open(service, '/docs/static/swagger-initializer.js')).text
  assert.match(script, /resolveUrl\('\.\/json'\)/)
  assert.match(script, /validatorUrl: null/)
  assert.deepEqual((await open(service, '/docs/json')).body, (await open(service, '/openapi.json')).body)
})

test('the browsable description has a title of its own, follows the dark scheme and fits a phone', async () => {
  const service = await startService()
  const page = (await open(service, '/docs')).text
  assert.match(page, /<title>flux-resourceset API<\/title>/)
  const script = (await open(service, '/docs/static/theme/page.js')).text
  assert.match(script, /prefers-color-scheme: dark/)
  assert.match(script, /name = 'viewport'/)
  const style = (await open(service, '/docs/static/theme/page.css')).text
  // Whatever is styled here is what the page is made of.
  const parts = await Promise.all(
    ['swagger-ui.css', 'swagger-ui-bundle.js'].map((name) => open(service, `/docs/static/${name}`)),
  )
  const made = parts.map(({ text }) => text).join()
  const classes = new Set(
    [...`${style} .dark-mode`.matchAll(/\.([a-z][\w-]+)(?=[^{}]*(?:\{|$))/g)].map(
      ([, name]) => name as string,
    ),
  )
  assert.ok(classes.has('response-col_links') && classes.has('dark-mode'))
  for (const name of classes) assert.ok(made.includes(name), name)
})

test('the browsable description also works over plain HTTP on any host', async () => {
  const service = await startService()
  const { headers } = await open(service, '/docs')
  assert.doesNotMatch(String(headers['content-security-policy'] ?? ''), /upgrade-insecure-requests/)
})

test('the page on operating names every metric of our own, and no other', async () => {
  const { text } = await open(await startService(), '/metrics')
  const exposed = [...text.matchAll(/^# TYPE (flux_resourceset_\w+) /gm)].map(([, name]) => name)
  const page = readFileSync(join(import.meta.dirname, '../docs/operating.md'), 'utf8')
  const rows = page.split('\n').filter((line) => line.startsWith('| `flux_resourceset_'))
  const named = rows.flatMap((row) =>
    [...(row.split('|')[1] ?? '').matchAll(/`(\w+)`/g)].map(([, name]) => name),
  )
  assert.deepEqual([...new Set(named)].toSorted(), exposed.toSorted())
})
