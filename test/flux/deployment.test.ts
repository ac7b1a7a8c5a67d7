// The manifests and the chart of deploy/: rendered by the real programs, and held to what production asks of them.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { parseConfig } from '../../src/config.ts'
import { temporaryFolder } from '../service.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects, run } from './tools.ts'

const ROOT = join(import.meta.dirname, '../..')
const CHART = join(ROOT, 'deploy/chart')
const OVERLAYS = join(ROOT, 'deploy/kustomize/overlays')
const NAMESPACE = 'flux-resourceset'
const PAGE = join(ROOT, 'docs/deploying.md')
const page = readFileSync(PAGE, 'utf8')
const [highAvailability, recovery, mirrors] = ['high-availability', 'disaster-recovery', 'mirrors'].map(
  (name) => readFileSync(join(ROOT, `docs/${name}.md`), 'utf8'),
)
const networkPolicy = readFileSync(join(ROOT, 'examples/network-policies/network_policy.yaml'), 'utf8')

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects freely
type Any = any

/** Rendered objects, and the Secrets that their users bring. */
interface Rendered {
  readonly yaml: string
  readonly objects: Any[]
  readonly secrets: readonly string[]
}

async function render(...args: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(...args)
  assert.equal(code, 0, stderr)
  return stdout
}

function kustomize(folder: string): Promise<string> {
  return render('kubectl', ['kustomize', folder])
}

function template(values: object, name = NAMESPACE): Promise<string> {
  const args = ['template', name, CHART, '--namespace', NAMESPACE, '--values', '-']
  return render('helm', args, { input: JSON.stringify(values) })
}

async function failure(values: object): Promise<string> {
  const args = ['template', 'fleet', CHART, '--values', '-']
  const { code, stderr } = await run('helm', args, { input: JSON.stringify(values) })
  assert.notEqual(code, 0, 'it was rendered')
  return stderr
}

/** The blocks of YAML on a page, by what is in them. */
function blockWith(text: string, where = page): string {
  const blocks = [...where.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => block as string)
  const found = blocks.filter((block) => block.includes(text))
  assert.equal(found.length, 1, text)
  return found[0] as string
}

const required = {
  image: { repository: 'registry.example.com/flux-resourceset' },
  auth: { existingSecret: 'flux-resourceset-tokens' },
}
const onPostgres = {
  ...required,
  store: 'postgres',
  database: {
    host: 'flux-resourceset-db-rw',
    existingSecret: 'flux-resourceset-db-app',
    caSecret: 'flux-resourceset-db-ca',
  },
}
const toTheFull = {
  ...onPostgres,
  demo: true,
  crud: { replicas: 3 },
  readOnly: { replicas: 5 },
  database: {
    host: 'db.example.com',
    name: 'fleet-2',
    user: 'owner',
    existingSecret: 'flux-resourceset-db-app',
    passwordKey: 'secret',
    sslMode: 'verify-ca',
    caSecret: 'flux-resourceset-db-ca',
    caKey: 'bundle.pem',
    poolSize: 4,
    maxStaleness: '2h',
    readOnly: { user: 'reader', existingSecret: 'flux-resourceset-db-reader' },
  },
}
const everything = {
  ...required,
  auth: { readToken: 'r'.repeat(16), writeToken: 'w'.repeat(16) },
  image: { ...required.image, digest: `sha256:${'0'.repeat(64)}`, pullPolicy: 'Always' },
  imagePullSecrets: [{ name: 'registry' }],
  externalUrl: 'https://fleet.example.com',
  demo: true,
  brakePercent: 2.5,
  shutdownDelaySeconds: 45,
  resourceTypes: { 'network_policy.yaml': networkPolicy },
  templates: { 'network-policies.yaml': 'kind: ResourceSet\n' },
  service: { type: 'LoadBalancer', port: 8080, annotations: { a: 'b' } },
  ingress: {
    enabled: true,
    className: 'nginx',
    annotations: { 'cert-manager.io/cluster-issuer': 'ca' },
    host: 'fleet.example.com',
    crudHost: 'fleet.example.com',
    tlsSecret: 'fleet-tls',
  },
  networkPolicy: { from: [{ namespaceSelector: { matchLabels: { a: 'b' } } }] },
  serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
  persistence: { size: '20Gi', storageClass: 'fast', accessMode: 'ReadWriteOncePod' },
  serviceAccount: { annotations: { a: 'b' } },
  podAnnotations: { a: 'b' },
  podLabels: { a: 'b' },
  priorityClassName: 'high',
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ key: 'a', operator: 'Exists' }],
  affinity: { nodeAffinity: {} },
  extraEnv: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/etc/ca/ca.crt' }],
  extraVolumes: [{ name: 'ca', configMap: { name: 'ca', optional: true } }],
  extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ca', readOnly: true }],
}

const TOKENS = 'flux-resourceset-tokens'
const DATABASE = 'flux-resourceset-db-app'
const AUTHORITY = 'flux-resourceset-db-ca'
const UPSTREAM = 'flux-resourceset-upstream'

/** The kustomization of the docs, beside a checkout as it says there. */
async function renderPage(t: { after(clean: () => void): void }, where = page): Promise<string> {
  const folder = temporaryFolder(t)
  const own = join(folder, 'fleet')
  cpSync(join(ROOT, 'deploy/kustomize'), join(folder, 'flux-resourceset/deploy/kustomize'), {
    recursive: true,
  })
  mkdirSync(own)
  writeFileSync(join(own, 'kustomization.yaml'), blockWith('kind: Kustomization', where))
  writeFileSync(join(own, 'network_policy.yaml'), networkPolicy)
  return kustomize(own)
}

type Render = (t: { after(clean: () => void): void }) => Promise<string>
const CASES: Record<string, { readonly secrets: readonly string[]; readonly yaml: Render }> = {
  'the overlay sqlite-single': { secrets: [TOKENS], yaml: () => kustomize(join(OVERLAYS, 'sqlite-single')) },
  'the overlay postgres-ha': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => kustomize(join(OVERLAYS, 'postgres-ha')),
  },
  'the overlay mirror': { secrets: [TOKENS, UPSTREAM], yaml: () => kustomize(join(OVERLAYS, 'mirror')) },
  'the kustomization of docs/deploying.md': { secrets: [TOKENS], yaml: (t) => renderPage(t) },
  'the kustomization of docs/mirrors.md': {
    secrets: [TOKENS, UPSTREAM],
    yaml: (t) => renderPage(t, mirrors),
  },
  'the chart with the values of docs/high-availability.md': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => template(parse(blockWith('existingSecret:', highAvailability))),
  },
  'the chart on SQLite': { secrets: [TOKENS], yaml: () => template(required) },
  'the chart in memory': { secrets: [TOKENS], yaml: () => template({ ...required, store: 'memory' }) },
  'the chart on PostgreSQL': { secrets: [TOKENS, DATABASE, AUTHORITY], yaml: () => template(onPostgres) },
  'the chart on PostgreSQL with every value for it': {
    secrets: [TOKENS, DATABASE, AUTHORITY, 'flux-resourceset-db-reader'],
    yaml: () => template(toTheFull, 'fleet'),
  },
  'the chart with three writers and no readers': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => template({ ...onPostgres, crud: { replicas: 3 }, readOnly: { replicas: 0 } }, 'fleet'),
  },
  'the chart with every value': { secrets: [], yaml: () => template(everything, 'fleet') },
  'the chart with the values of docs/deploying.md': {
    secrets: [TOKENS],
    yaml: () => template(parse(blockWith('existingSecret:'))),
  },
}

for (const [name, { secrets, yaml: renderCase }] of Object.entries(CASES)) {
  test(name, async (t) => {
    const yaml = await renderCase(t)
    const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets }
    assert.ok(ofKind(rendered, 'Deployment').length > 0)
    for (const [promise, check] of Object.entries(PROMISES)) await t.test(promise, () => check(rendered))
    await t.test('is the same when rendered again', async (t) => assert.equal(await renderCase(t), yaml))
  })
}

function ofKind({ objects }: Rendered, kind: string): Any[] {
  return objects.filter((object) => object.kind === kind)
}

/** Every pod there will be: its labels and its spec, and the Deployment that it is of. */
function podsOf(rendered: Rendered): { labels: Any; spec: Any; deployment?: Any }[] {
  return [
    ...ofKind(rendered, 'Deployment').map((deployment) => ({
      labels: deployment.spec.template.metadata.labels,
      spec: deployment.spec.template.spec,
      deployment,
    })),
    ...ofKind(rendered, 'Pod').map(({ metadata, spec }) => ({ labels: metadata.labels, spec })),
  ]
}

function deployed(rendered: Rendered) {
  return podsOf(rendered).filter(({ deployment }) => deployment)
}

function matches(labels: Any, { matchLabels = {}, matchExpressions = [] }: Any): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }: Any) => {
      assert.equal(operator, 'In')
      return values.includes(labels[key])
    })
  )
}

/** The environment of a container, with a word for what comes from a Secret. */
function environmentOf(rendered: Rendered, { env = [], envFrom = [] }: Any): Record<string, string> {
  const maps = envFrom.map(({ configMapRef }: Any) =>
    ofKind(rendered, 'ConfigMap').find(({ metadata }) => metadata.name === configMapRef.name),
  )
  return {
    ...Object.assign({}, ...maps.map(({ data }: Any) => data)),
    ...Object.fromEntries(
      env.map(({ name, value, valueFrom }: Any) => [name, value ?? valueFrom.secretKeyRef.name]),
    ),
  }
}

/** The Secrets of a volume, with what is taken of each. */
function secretsOf({ secret, projected }: Any): { name: string; items: Any[] }[] {
  const all = [...(secret ? [secret] : []), ...(projected?.sources ?? []).map((source: Any) => source.secret)]
  return all.map(({ name, secretName, items }) => ({ name: name ?? secretName, items }))
}

function isUrlWithoutPassword(value: string): boolean {
  return /^(sqlite|postgres):/.test(value) && new URL(value).password === ''
}

const PROMISES: Record<string, (rendered: Rendered) => void> = {
  'holds objects that an API server takes, all in one namespace'({ objects }) {
    assert.deepEqual(validateObjects(objects), [])
    const namespaces = objects.map(({ kind, metadata }) =>
      kind === 'Namespace' ? metadata.name : metadata.namespace,
    )
    assert.deepEqual([...new Set(namespaces)], [NAMESPACE])
  },

  'gives pods no more rights than the restricted Pod Security Standard'(rendered) {
    for (const { spec } of podsOf(rendered)) {
      assert.equal(spec.automountServiceAccountToken, false)
      assert.equal(spec.securityContext.runAsNonRoot, true)
      assert.ok(spec.securityContext.runAsUser > 0)
      assert.equal(spec.securityContext.seccompProfile.type, 'RuntimeDefault')
      for (const field of ['hostNetwork', 'hostPID', 'hostIPC']) assert.equal(spec[field], undefined)
      assert.deepEqual(
        (spec.volumes ?? []).filter(({ hostPath }: Any) => hostPath),
        [],
      )
      for (const { securityContext } of spec.containers) {
        assert.deepEqual(securityContext, {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    }
    for (const { metadata } of ofKind(rendered, 'Namespace')) {
      assert.equal(metadata.labels['pod-security.kubernetes.io/enforce'], 'restricted')
    }
  },

  'probes the process and its store, and bounds its memory'(rendered) {
    for (const { spec } of deployed(rendered)) {
      const [container] = spec.containers
      const { startupProbe, livenessProbe, readinessProbe, resources } = container
      assert.equal(livenessProbe.httpGet.path, '/health')
      assert.equal(startupProbe.httpGet.path, '/health')
      assert.equal(readinessProbe.httpGet.path, '/ready')
      for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
        assert.equal(httpGet.port, 'http')
      assert.deepEqual(container.ports, [{ name: 'http', containerPort: 8080 }])
      assert.ok(resources.requests.cpu && resources.requests.memory && resources.limits.memory)
      assert.equal(resources.limits.cpu, undefined)
    }
  },

  'leaves the process the time that it may take to stop'(rendered) {
    for (const { spec } of deployed(rendered)) {
      const { SHUTDOWN_DELAY_SECONDS = '0' } = environmentOf(rendered, spec.containers[0])
      assert.ok(spec.terminationGracePeriodSeconds >= Number(SHUTDOWN_DELAY_SECONDS) + 25)
    }
  },

  'starts the service with settings that it takes, and that are documented'(rendered) {
    const documented = readFileSync(join(ROOT, 'docs/configuration.md'), 'utf8')
    for (const { spec } of deployed(rendered)) {
      const environment = environmentOf(rendered, spec.containers[0])
      for (const name of Object.keys(environment).filter((name) => !name.startsWith('NODE_'))) {
        assert.ok(
          documented.match(new RegExp(`^\\|[^|]*\`${name}\``, 'm')),
          `${name} is no setting of docs/configuration.md`,
        )
      }
      const parsed = parseConfig(environment)
      assert.ok(parsed.ok, JSON.stringify(parsed))
      const { store, snapshotFolder, mode } = parsed.config
      assert.equal(store.backend === 'postgres', rendered.secrets.includes(DATABASE))
      assert.equal(snapshotFolder !== undefined, store.backend === 'postgres')
      assert.equal(mode === 'crud', 'CRUD_AUTH_TOKEN_FILE' in environment)
      // A reader may have no right to fill a database.
      assert.ok(mode === 'crud' || !('SEED_FILE' in environment))
    }
  },

  'mounts every file of a secret that a setting names, and the token for writing only where it is needed'(
    rendered,
  ) {
    for (const { spec } of deployed(rendered)) {
      const { volumeMounts } = spec.containers[0]
      const environment = environmentOf(rendered, spec.containers[0])
      const files = Object.entries(environment).flatMap(([name, value]) =>
        /(TOKEN|PASSWORD)_FILE$/.test(name) ? [value] : [],
      )
      const authority = new URL(environment.DATABASE_URL ?? 'none:').searchParams.get('sslrootcert')
      if (authority) files.push(authority)
      const mounted = volumeMounts.flatMap(({ name, mountPath }: Any) => {
        const volume = spec.volumes.find((volume: Any) => volume.name === name)
        return secretsOf(volume).flatMap(({ items }) => items.map(({ path }: Any) => `${mountPath}/${path}`))
      })
      assert.ok(files.length > 0)
      assert.deepEqual(mounted.toSorted(), files.toSorted())
    }
  },

  'keeps secrets in Secrets'({ yaml, ...rendered }) {
    const secret = /TOKEN|PASSWORD|^DATABASE_URL$/
    for (const { env = [] } of podsOf({ yaml, ...rendered }).flatMap(({ spec }) => spec.containers)) {
      for (const { name, value } of env.filter(({ name }: Any) => secret.test(name))) {
        assert.ok(value === undefined || name.endsWith('_FILE') || isUrlWithoutPassword(value), name)
      }
    }
    for (const { data = {} } of ofKind({ yaml, ...rendered }, 'ConfigMap')) {
      assert.deepEqual(
        Object.keys(data).filter((key) => secret.test(key) && !isUrlWithoutPassword(data[key])),
        [],
      )
    }
    for (const token of Object.values(everything.auth)) assert.ok(yaml.split(token).length <= 2)
  },

  'refers to nothing that is not there'(rendered) {
    const names = (kind: string): string[] => ofKind(rendered, kind).map(({ metadata }) => metadata.name)
    const known: Record<string, readonly string[]> = {
      Secret: [...names('Secret'), ...rendered.secrets],
      ConfigMap: names('ConfigMap'),
      PersistentVolumeClaim: names('PersistentVolumeClaim'),
    }
    for (const { spec } of podsOf(rendered)) {
      if (spec.serviceAccountName) assert.ok(names('ServiceAccount').includes(spec.serviceAccountName))
      const wanted = [
        ...spec.containers.flatMap(({ env = [] }: Any) =>
          env.flatMap(({ valueFrom }: Any) => (valueFrom ? [['Secret', valueFrom.secretKeyRef.name]] : [])),
        ),
        ...spec.containers.flatMap(({ envFrom = [] }: Any) =>
          envFrom.map(({ configMapRef }: Any) => ['ConfigMap', configMapRef.name]),
        ),
        ...(spec.volumes ?? []).flatMap((volume: Any) => {
          const { configMap, persistentVolumeClaim } = volume
          if (persistentVolumeClaim) return [['PersistentVolumeClaim', persistentVolumeClaim.claimName]]
          if (configMap) return configMap.optional ? [] : [['ConfigMap', configMap.name]]
          return secretsOf(volume).map(({ name }) => ['Secret', name])
        }),
      ] as [string, string][]
      for (const [kind, name] of wanted) assert.ok(known[kind]?.includes(name), `${kind} ${name}`)
      const volumes = (spec.volumes ?? []).map(({ name }: Any) => name)
      const mounted = spec.containers.flatMap(({ volumeMounts = [] }: Any) => volumeMounts)
      assert.deepEqual([...new Set(mounted.map(({ name }: Any) => name))].sort(), volumes.sort())
    }
  },

  'sends polls and changes to pods that serve them'(rendered) {
    const services = ofKind(rendered, 'Service')
    // A mirror takes no changes.
    assert.equal(services.length, rendered.secrets.includes(UPSTREAM) ? 1 : 2)
    for (const { metadata, spec } of services) {
      const targets = podsOf(rendered).filter(({ labels }) => matches(labels, { matchLabels: spec.selector }))
      assert.equal(targets.length, 1, metadata.name)
      const [container] = targets[0]?.spec.containers ?? []
      for (const { targetPort } of spec.ports) assert.equal(targetPort, container.ports[0].name)
      if (metadata.name.endsWith('-crud')) assert.equal(environmentOf(rendered, container).API_MODE, 'crud')
      else assert.ok(targets[0]?.deployment.spec.replicas > 1 || deployed(rendered).length === 1)
    }
    const backends = ofKind(rendered, 'Ingress').flatMap(({ spec }) =>
      spec.rules.flatMap(({ http }: Any) => http.paths.map(({ backend }: Any) => backend.service)),
    )
    for (const { name, port } of backends) {
      const service = services.find(({ metadata }) => metadata.name === name)
      assert.ok(service?.spec.ports.some(({ name }: Any) => name === port.name))
    }
  },

  'writes to one volume from one pod at a time'(rendered) {
    for (const { spec } of ofKind(rendered, 'Deployment')) {
      const volumes = spec.template.spec.volumes.filter(
        ({ persistentVolumeClaim }: Any) => persistentVolumeClaim,
      )
      if (volumes.length > 0) assert.deepEqual([spec.replicas, spec.strategy.type], [1, 'Recreate'])
      for (const { name } of volumes) {
        const [mount] = spec.template.spec.containers[0].volumeMounts.filter(
          (each: Any) => each.name === name,
        )
        assert.equal(mount.mountPath, '/var/lib/flux-resourceset')
      }
    }
  },

  'lets several pods of a kind be drained one by one, on nodes of their own'(rendered) {
    const budgets = ofKind(rendered, 'PodDisruptionBudget')
    const several = deployed(rendered).filter(({ deployment }) => deployment.spec.replicas > 1)
    assert.equal(budgets.length, several.length)
    for (const { labels, spec } of several) {
      assert.equal(budgets.filter((budget) => matches(labels, budget.spec.selector)).length, 1)
      assert.equal(spec.topologySpreadConstraints.length, 2)
      for (const { labelSelector } of spec.topologySpreadConstraints)
        assert.ok(matches(labels, labelSelector))
    }
  },

  'lets nothing out but to a database or an upstream'(rendered) {
    const [policy] = ofKind(rendered, 'NetworkPolicy')
    for (const { labels, spec } of podsOf(rendered)) {
      const service = spec.containers[0].ports !== undefined
      assert.equal(matches(labels, policy.spec.podSelector), service)
    }
    assert.deepEqual(policy.spec.policyTypes, ['Ingress', 'Egress'])
    const ports = (policy.spec.egress ?? []).flatMap(({ ports }: Any) => ports.map(({ port }: Any) => port))
    const [called] = Object.entries({ [DATABASE]: 5432, [UPSTREAM]: 443 }).filter(([secret]) =>
      rendered.secrets.includes(secret),
    )
    assert.deepEqual(ports, called ? [53, 53, called[1]] : [])
  },

  'reads the metrics of every pod once'(rendered) {
    for (const { spec } of ofKind(rendered, 'ServiceMonitor')) {
      const services = ofKind(rendered, 'Service').filter(({ metadata }) =>
        matches(metadata.labels, spec.selector),
      )
      for (const { labels } of deployed(rendered)) {
        const read = services.filter((service) => matches(labels, { matchLabels: service.spec.selector }))
        assert.equal(read.length, 1)
      }
      assert.equal(spec.endpoints[0].port, services[0].spec.ports[0].name)
    }
  },
}

test('the pods of the chart are those of the overlays', async () => {
  for (const [overlay, values] of [
    ['sqlite-single', required],
    ['postgres-ha', onPostgres],
  ] as const) {
    const [ours, theirs] = await Promise.all([kustomize(join(OVERLAYS, overlay)), template(values)])
    const [one, other] = [ours, theirs].map((yaml) => {
      const rendered = { yaml, objects: parseObjects(yaml), secrets: [] }
      return deployed(rendered).map(({ deployment, labels, spec }) => {
        const {
          env: _env,
          envFrom: _envFrom,
          image: _image,
          imagePullPolicy: _policy,
          volumeMounts: _mounts,
          ...container
        } = spec.containers[0]
        const { volumes: _volumes, containers: _containers, ...pod } = spec
        const { replicas, strategy } = deployment.spec
        return { name: deployment.metadata.name, replicas, strategy, labels, container, pod }
      })
    })
    assert.deepEqual(other, one)
  }
})

test('the alerts of the chart are those of the component', async () => {
  const component = readFileSync(
    join(ROOT, 'deploy/kustomize/components/service-monitor/alerts.yaml'),
    'utf8',
  )
  const chart = parseObjects(await template({ ...required, serviceMonitor: { enabled: true } })) as Any[]
  const rule = chart.find(({ kind }) => kind === 'PrometheusRule')
  assert.deepEqual(rule.spec, parse(component).spec)
  const alerts = rule.spec.groups[0].rules.map(({ alert }: Any) => alert)
  assert.deepEqual(
    [...page.matchAll(/^\| `(FluxResourceSet\w+)` \|/gm)].map(([, alert]) => alert),
    alerts,
  )
  const metrics = ['metrics', 'poll-metrics'].map((file) =>
    readFileSync(join(ROOT, `src/http/${file}.ts`), 'utf8'),
  )
  for (const [name] of JSON.stringify(rule.spec).matchAll(/flux_resourceset_\w+/g)) {
    assert.ok(metrics.join().includes(`'${name}'`), name)
  }
})

test('the objects of the pages are those that an API server takes', () => {
  const job = parse(blockWith('kind: CronJob', recovery))
  const objects = [...['kind: Ingress', 'kind: Pod'].map((kind) => parse(blockWith(kind))), job]
  assert.deepEqual(validateObjects(objects), [])
  const { metadata, spec } = job.spec.jobTemplate.spec.template
  const pods: Rendered = { yaml: '', objects: [...objects, { kind: 'Pod', metadata, spec }], secrets: [] }
  PROMISES['gives pods no more rights than the restricted Pod Security Standard']?.(pods)
})

test('alerts on the pages are those of the component', () => {
  const component = parse(
    readFileSync(join(ROOT, 'deploy/kustomize/components/service-monitor/alerts.yaml'), 'utf8'),
  )
  const known = new Map(
    component.spec.groups[0].rules.map(({ alert, expr }: Any) => [
      alert,
      expr.replaceAll(/\{namespace="[^"]*"\}/g, ''),
    ]),
  )
  const shown = parse(blockWith('- alert:', highAvailability))
  assert.ok(shown.length > 0)
  for (const { alert, expr } of shown) assert.equal(expr, known.get(alert), alert)
})

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

describe('the chart', () => {
  test('has nothing that its linter minds', async () => {
    for (const values of [required, onPostgres, toTheFull, everything]) {
      await render('helm', ['lint', CHART, '--strict', '--values', '-'], { input: JSON.stringify(values) })
    }
  })

  test('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
    assert.deepEqual([chart.version, chart.appVersion], [version, version])
  })

  test('restarts pods for other files and for nothing else: tokens are read again by themselves', async () => {
    const podOf = async (values: object): Promise<Any> => {
      const objects = parseObjects(await template({ ...everything, ...values })) as Any[]
      return objects.find(({ kind }) => kind === 'Deployment').spec.template
    }
    const pod = await podOf({})
    assert.deepEqual(await podOf({ service: { annotations: { c: 'd' } }, networkPolicy: {} }), pod)
    assert.notDeepEqual(await podOf({ resourceTypes: { 'network_policy.yaml': `${networkPolicy}#` } }), pod)
    assert.notDeepEqual(await podOf({ templates: { 'network-policies.yaml': 'kind: ResourceSet' } }), pod)
    assert.deepEqual(await podOf({ auth: { readToken: 'R'.repeat(16), writeToken: 'w'.repeat(16) } }), pod)
    assert.doesNotMatch(JSON.stringify(pod), /helm\.sh\/chart/)
  })

  test('keeps the volume when the release goes', async () => {
    const objects = parseObjects(await template(required)) as Any[]
    const claim = objects.find(({ kind }) => kind === 'PersistentVolumeClaim')
    assert.equal(claim.metadata.annotations['helm.sh/resource-policy'], 'keep')
    const own = parseObjects(await template({ ...required, persistence: { existingClaim: 'mine' } })) as Any[]
    assert.ok(!own.some(({ kind }) => kind === 'PersistentVolumeClaim'))
    assert.match(JSON.stringify(own), /"claimName":"mine"/)
  })

  test('has a description and a default of every value, as docs/deploying.md lists them', () => {
    const schema = JSON.parse(readFileSync(join(CHART, 'values.schema.json'), 'utf8'))
    const { global: _global, ...properties } = schema.properties
    const rows = rowsOf(properties, parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')))
    const table = ['| value | default | meaning |', '|---|---|---|', ...rows, ''].join('\n')
    const written = page.slice(page.indexOf('| value | default | meaning |'))
    if (process.env.DOCS_UPDATE === '1')
      writeFileSync(
        PAGE,
        page.replace(written, () => table),
      )
    else assert.equal(written, table)
  })
})

/** A line for each value that is described; what has no description is only a group of values. */
function rowsOf(properties: Any, values: Any, above = ''): string[] {
  assert.deepEqual(Object.keys(values).sort(), Object.keys(properties).sort(), above)
  return Object.keys(values).flatMap((name) => {
    const { description, properties: below } = properties[name]
    const path = `${above}${name}`
    if (description === undefined) return rowsOf(below, values[name], `${path}.`)
    const value = typeof values[name] === 'string' ? values[name] : JSON.stringify(values[name])
    const fallback = value === '' || value === 'null' ? '' : `\`${value}\``
    return [`| \`${path}\` | ${fallback} | ${description}. |`]
  })
}
