// The manifests and the chart of deploy/: rendered by the real programs, and held to what production asks of them.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { parse } from 'yaml'
import { readAccessRules } from '../../src/http/auth/access-rules.ts'
import { builtInTypes, temporaryFolder } from '../service.ts'
import { everything, networkPolicy, onPostgres, required, secured, toTheFull } from './chart-values.ts'
import {
  type Any,
  blockWith,
  CASES,
  CHART,
  configOf,
  DATABASE,
  deployed,
  environmentOf,
  highAvailability,
  kustomize,
  listenersOf,
  matches,
  NAMESPACE,
  OVERLAYS,
  ofKind,
  page,
  podsOf,
  portOf,
  type Rendered,
  ROOT,
  readPage,
  render,
  secretsOf,
  template,
  tlsPage,
  UPSTREAM,
} from './rendered-deployments.ts'
import { validateObjects } from './schemas.ts'
import { parseObjects } from './tools.ts'

const recovery = readPage('disaster-recovery')

for (const [name, { secrets, yaml: renderCase }] of Object.entries(CASES)) {
  test(name, async (t) => {
    const yaml = await renderCase(t)
    const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets }
    assert.ok(ofKind(rendered, 'Deployment').length > 0)
    for (const [promise, check] of Object.entries(PROMISES)) await t.test(promise, () => check(rendered))
    await t.test('is the same when rendered again', async (t) => assert.equal(await renderCase(t), yaml))
  })
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

  'probes the process and its store where the API is not, by plain HTTP'(rendered) {
    for (const { spec } of deployed(rendered)) {
      const [container] = spec.containers
      const { startupProbe, livenessProbe, readinessProbe } = container
      assert.equal(livenessProbe.httpGet.path, '/health')
      assert.equal(startupProbe.httpGet.path, '/health')
      assert.equal(readinessProbe.httpGet.path, '/ready')
      const { api, admin } = listenersOf(rendered, container)
      assert.notEqual(admin, api)
      for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe]) {
        assert.ok(admin !== undefined && portOf(container, httpGet.port) === admin, 'a probe on another port')
        assert.equal(httpGet.scheme ?? 'HTTP', 'HTTP')
      }
      assert.deepEqual(
        container.ports.map(({ containerPort }: Any) => containerPort),
        [api, admin],
      )
    }
  },

  'bounds its memory and what it may write to the disk of a node'(rendered) {
    for (const { spec } of deployed(rendered)) {
      const { resources } = spec.containers[0]
      assert.ok(resources.requests.cpu && resources.requests.memory && resources.limits.memory)
      assert.equal(resources.limits.cpu, undefined)
      const folders = spec.volumes.flatMap(({ emptyDir }: Any) => (emptyDir ? [emptyDir] : []))
      assert.ok(folders.length > 0)
      for (const { sizeLimit } of folders) assert.match(sizeLimit ?? '', /^\d+Gi$/)
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
      const { store, snapshotFolder, mode } = configOf(rendered, spec.containers[0])
      assert.equal(store.backend === 'postgres', rendered.secrets.includes(DATABASE))
      assert.equal(snapshotFolder !== undefined, store.backend === 'postgres')
      assert.equal(mode === 'crud', 'CRUD_AUTH_TOKEN_FILE' in environment)
    }
  },

  'mounts every file of a secret that a setting names, and the token for writing only where it is needed'(
    rendered,
  ) {
    for (const { spec } of deployed(rendered)) {
      const { volumeMounts } = spec.containers[0]
      const environment = environmentOf(rendered, spec.containers[0])
      const files = Object.entries(environment).flatMap(([name, value]) =>
        /^(?!SEED|ACCESS).*_FILE$/.test(name) ? [value] : [],
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

  'gives pods that only read nothing to write with'(rendered) {
    for (const { spec, deployment } of deployed(rendered)) {
      const { mode, oidc, seedFile } = configOf(rendered, spec.containers[0])
      if (mode === 'crud') continue
      assert.deepEqual([oidc, seedFile], [undefined, undefined])
      const taken = spec.volumes
        .flatMap(secretsOf)
        .flatMap(({ items }: Any) => items.map(({ key }: Any) => key))
      assert.ok(taken.includes('AUTH_TOKEN'))
      assert.ok(!taken.includes('CRUD_AUTH_TOKEN'), deployment.metadata.name)
    }
  },

  'reads the rules of access from a ConfigMap that has them'(rendered) {
    for (const { spec } of deployed(rendered)) {
      const { ACCESS_FILE } = environmentOf(rendered, spec.containers[0])
      const mount = spec.containers[0].volumeMounts.find(({ name }: Any) => name === 'access')
      assert.equal(ACCESS_FILE, mount && `${mount.mountPath}/access.yaml`)
      if (!ACCESS_FILE) continue
      const { configMap } = spec.volumes.find(({ name }: Any) => name === 'access')
      const map = ofKind(rendered, 'ConfigMap').find(({ metadata }) => metadata.name === configMap.name)
      assert.deepEqual(Object.keys(map.data), ['access.yaml'])
      const file = join(temporaryFolder({ after }), 'access.yaml')
      writeFileSync(file, map.data['access.yaml'])
      assert.ok(readAccessRules(file, builtInTypes()).ok)
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

  'sends polls and changes to pods that serve them, and nobody to the port of probes'(rendered) {
    const services = ofKind(rendered, 'Service').filter(({ spec }) => spec.clusterIP !== 'None')
    // A mirror takes no changes.
    assert.equal(services.length, rendered.secrets.includes(UPSTREAM) ? 1 : 2)
    for (const { metadata, spec } of services) {
      const targets = podsOf(rendered).filter(({ labels }) => matches(labels, { matchLabels: spec.selector }))
      assert.equal(targets.length, 1, metadata.name)
      const [container] = targets[0]?.spec.containers ?? []
      const scheme = configOf(rendered, container).tls ? 'https' : 'http'
      assert.equal(spec.ports.length, 1)
      const [{ name, targetPort, appProtocol }] = spec.ports
      assert.equal(portOf(container, targetPort), listenersOf(rendered, container).api)
      assert.deepEqual([name, targetPort, appProtocol], [scheme, scheme, scheme])
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

  'reads the metrics of every pod once, where they are'(rendered) {
    const headless = ofKind(rendered, 'Service').filter(({ spec }) => spec.clusterIP === 'None')
    assert.equal(headless.length, 1)
    for (const { metadata, spec } of ofKind(rendered, 'ServiceMonitor')) {
      const read = ofKind(rendered, 'Service').filter((service) =>
        matches(service.metadata.labels, spec.selector),
      )
      assert.deepEqual(read, headless, metadata.name)
      assert.equal(spec.endpoints.length, 1)
      assert.equal(spec.endpoints[0].port, read[0].spec.ports[0].name)
      assert.equal(spec.endpoints[0].path, '/metrics')
      assert.equal(spec.endpoints[0].scheme, undefined)
    }
    const [{ spec }] = headless
    for (const { labels, spec: pod, deployment } of podsOf(rendered)) {
      const [container] = pod.containers
      const admin = deployment && listenersOf(rendered, container).admin
      assert.equal(portOf(container, spec.ports[0].targetPort), admin)
      if (deployment) assert.ok(matches(labels, { matchLabels: spec.selector }))
    }
  },
}

describe('what is wrong with a rendered object is noticed:', () => {
  /** What a promise says once something was done to a pod's container. */
  async function noticed(promise: string, values: object, spoil: (container: Any) => void): Promise<string> {
    const yaml = await template(values)
    const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets: [] }
    PROMISES[promise]?.(rendered)
    for (const { spec } of deployed(rendered)) spoil(spec.containers[0])
    try {
      PROMISES[promise]?.(rendered)
    } catch (error) {
      return (error as Error).message
    }
    return 'nothing'
  }
  const probes = 'probes the process and its store where the API is not, by plain HTTP'

  test('a probe of a port that no container has', async () => {
    const spoil = ({ livenessProbe }: Any) => (livenessProbe.httpGet.port = 'gone')
    assert.equal(await noticed(probes, required, spoil), 'a probe on another port')
  })

  test('a probe of the port that speaks TLS', async () => {
    for (const port of ['https', 8080]) {
      const spoil = ({ readinessProbe }: Any) => (readinessProbe.httpGet.port = port)
      assert.equal(await noticed(probes, secured, spoil), 'a probe on another port')
    }
  })

  test('a process that listens nowhere for probes, or somewhere else', async () => {
    for (const value of ['', '0.0.0.0:9999']) {
      const spoil = ({ env }: Any) => {
        env.find(({ name }: Any) => name === 'ADMIN_LISTEN_ADDR').value = value
      }
      assert.equal(await noticed(probes, required, spoil), 'a probe on another port')
    }
  })
})

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
  const chart = parseObjects(
    await template({ ...required, serviceMonitor: { enabled: true }, networkPolicy: { enabled: false } }),
  ) as Any[]
  const rule = chart.find(({ kind }) => kind === 'PrometheusRule')
  assert.deepEqual(rule.spec, parse(component).spec)
  const alerts = rule.spec.groups[0].rules.map(({ alert }: Any) => alert)
  assert.deepEqual(
    [...page.matchAll(/^\| `(FluxResourceSet\w+)` \|/gm)].map(([, alert]) => alert),
    alerts,
  )
  assertKnownMetrics(JSON.stringify(rule.spec))
})

function assertKnownMetrics(text: string): void {
  const metrics = ['metrics', 'fleet-metrics', 'poll/poll-metrics', 'load/traffic'].map((file) =>
    readFileSync(join(ROOT, `src/http/${file}.ts`), 'utf8'),
  )
  // A histogram has a name for each of its parts.
  for (const [, name = ''] of text.matchAll(/(flux_resourceset_\w+?)(?:_bucket)?\b/g))
    assert.ok(metrics.join().includes(`'${name}'`), name)
}

test('the dashboard of the chart is only made where it is asked for, and shows metrics that there are', async () => {
  const dashboardIn = async (values: object) =>
    (parseObjects(await template({ ...required, ...values })) as Any[]).find(
      ({ metadata }) => metadata.labels?.grafana_dashboard === '1',
    )
  assert.equal(await dashboardIn({}), undefined)
  const { data } = await dashboardIn({ dashboard: { enabled: true } })
  const dashboards = Object.values<string>(data)
  assert.equal(dashboards.length, 2)
  for (const text of dashboards) {
    assert.ok(JSON.parse(text).panels.length > 0)
    assertKnownMetrics(text)
  }
})

test('the objects of the pages are those that an API server takes', () => {
  const job = parse(blockWith('kind: CronJob', recovery))
  const certificates = ['server auth', 'client auth'].map((usage) => parse(blockWith(usage, tlsPage)))
  const objects = [
    ...['kind: Ingress', 'kind: Pod'].map((kind) => parse(blockWith(kind))),
    job,
    ...certificates,
  ]
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

describe('the chart', () => {
  test('has nothing that its linter minds', async () => {
    for (const values of [required, onPostgres, toTheFull, everything, secured]) {
      await render('helm', ['lint', CHART, '--strict', '--values', '-'], { input: JSON.stringify(values) })
    }
  })

  test('has the version of the package', () => {
    const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'))
    const chart = parse(readFileSync(join(CHART, 'Chart.yaml'), 'utf8'))
    assert.deepEqual([chart.version, chart.appVersion], [version, version])
  })

  test('tells clusters to poll its Ingress, over TLS where the Ingress ends it or passes it through', async () => {
    const host = 'fleet.example.com'
    const tls = { existingSecret: 'flux-resourceset-tls' }
    for (const [values, url] of [
      [{}, undefined],
      [{ tls }, undefined],
      [{ ingress: { enabled: true, host } }, `http://${host}`],
      [{ ingress: { enabled: true, host, tlsSecret: 'fleet-tls' } }, `https://${host}`],
      [{ ingress: { enabled: true, host }, tls }, `https://${host}`],
      [
        { ingress: { enabled: true, host }, externalUrl: 'https://other.example.com' },
        'https://other.example.com',
      ],
    ] as const) {
      const yaml = await template({ ...required, ...values })
      const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets: [] }
      for (const { spec } of deployed(rendered))
        assert.equal(environmentOf(rendered, spec.containers[0]).EXTERNAL_URL, url, JSON.stringify(values))
    }
  })

  test('restarts pods for other files and for nothing else: tokens are read again by themselves', async () => {
    const podOf = async (values: object): Promise<Any> => {
      const objects = parseObjects(await template({ ...everything, ...values })) as Any[]
      return objects.find(({ kind }) => kind === 'Deployment').spec.template
    }
    const pod = await podOf({})
    assert.deepEqual(
      await podOf({ service: { annotations: { c: 'd' } }, networkPolicy: { enabled: false } }),
      pod,
    )
    assert.notDeepEqual(await podOf({ resourceTypes: { 'network_policy.yaml': `${networkPolicy}#` } }), pod)
    assert.notDeepEqual(await podOf({ templates: { 'network-policies.yaml': 'kind: ResourceSet' } }), pod)
    assert.deepEqual(await podOf({ auth: { readToken: 'R'.repeat(16), writeToken: 'w'.repeat(16) } }), pod)
    assert.doesNotMatch(JSON.stringify(pod), /helm\.sh\/chart/)
  })

  test('takes the rules of access from a ConfigMap of yours', async () => {
    const yaml = await template({ ...required, access: { existingConfigMap: 'mine' } })
    const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets: [] }
    assert.deepEqual(ofKind(rendered, 'ConfigMap'), [])
    const [pod] = deployed(rendered)
    const volume = pod?.spec.volumes.find(({ name }: Any) => name === 'access')
    assert.equal(volume.configMap.name, 'mine')
    const { accessFile } = configOf(rendered, pod?.spec.containers[0])
    assert.equal(accessFile, '/etc/flux-resourceset/access/access.yaml')
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
        join(ROOT, 'docs/deploying.md'),
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
