// The check of objects lets right ones pass and refuses wrong ones, so that other tests can rely on it.
import assert from 'node:assert/strict'
import { suite, test } from 'node:test'
import { validateObjects } from './schemas.ts'
import { parseObjects, renderResourceSet } from './tools.ts'

const RIGHT = parseObjects(`
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata:
  name: components
  namespace: flux-system
  annotations: {fluxcd.controlplane.io/reconcileEvery: 5m}
spec:
  type: ExternalService
  url: https://flux-resourceset.example.com/api/v2/flux/clusters/a.example.com/namespaces
  secretRef: {name: token}
  certSecretRef: {name: ca}
  filter: {limit: 10000}
  schedule: [{cron: '0 6 * * 1-5', window: 2h}]
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSetInputProvider
metadata: {name: cluster, namespace: flux-system}
spec: {type: Static, defaultValues: {clusterDns: a.example.com}}
---
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: components, namespace: flux-system}
spec:
  wait: true
  dependsOn:
    - {apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSetInputProvider, name: components, ready: true}
  inputsFrom: [{apiVersion: fluxcd.controlplane.io/v1, kind: ResourceSetInputProvider, name: components}]
  resources: [{anything: {goes: here}}]
---
apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: flux-system}
spec:
  distribution: {version: 2.x, registry: registry.example.com/fluxcd}
  sync: {kind: OCIRepository, url: 'oci://registry.example.com/fleet', ref: latest, path: clusters/a}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: OCIRepository
metadata: {name: podinfo, namespace: flux-system}
spec:
  interval: 1h30m
  url: oci://registry.example.com/charts/podinfo
  ref: {semver: 6.x}
  layerSelector: {mediaType: application/vnd.cncf.helm.chart.content.v1.tar+gzip, operation: copy}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: HelmRepository
metadata: {name: podinfo, namespace: flux-system}
spec: {interval: 1h, url: 'https://charts.example.com'}
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo, namespace: flux-system}
spec:
  interval: 10m
  chartRef: {kind: OCIRepository, name: podinfo}
  dependsOn: [{name: cert-manager}]
  values: {any: [thing]}
  valuesFrom:
    - {kind: ConfigMap, name: values, valuesKey: replicaCount, targetPath: 'pods[0].replica\\.Count', literal: true}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: fleet, namespace: flux-system}
spec:
  interval: 10m
  prune: true
  sourceRef: {kind: OCIRepository, name: fleet}
  postBuild: {substitute: {a: b}, substituteFrom: [{kind: ConfigMap, name: cluster-identity}]}
---
apiVersion: notification.toolkit.fluxcd.io/v1beta3
kind: Alert
metadata: {name: fleet, namespace: flux-system}
spec: {providerRef: {name: fleet}, eventSources: [{kind: ResourceSet, name: '*'}]}
---
apiVersion: notification.toolkit.fluxcd.io/v1
kind: Receiver
metadata: {name: fleet, namespace: flux-system}
spec: {type: generic, secretRef: {name: hook}, resources: [{kind: ResourceSetInputProvider, name: '*'}]}
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: api, namespace: api}
spec: {selector: {matchLabels: {app: api}}, endpoints: [{port: http, interval: 30s}]}
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: api, namespace: api}
spec: {groups: [{name: api, partial_response_strategy: Warn, rules: [{alert: Down, expr: up == 0}]}]}
---
apiVersion: v1
kind: Namespace
metadata: {name: api, labels: {example.com/Team_1: '', pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: api.v1, namespace: api, annotations: {Example.COM/any: 'any text, really'}}
data: {values.yaml: 'a: 1'}
---
apiVersion: v1
kind: Secret
metadata: {name: api, namespace: api}
data: {token: c2VjcmV0}
---
apiVersion: v1
kind: Service
metadata: {name: api, namespace: api}
spec:
  selector: {app: api}
  ports: [{name: dns, port: 53, targetPort: dns, protocol: TCP}, {name: dns-udp, port: 53, targetPort: 5353, protocol: UDP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: api}
spec:
  replicas: 2
  strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}}
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec:
      containers:
        - name: api
          image: registry.example.com/api:1
          imagePullPolicy: IfNotPresent
          ports: [{name: http, containerPort: 8080}]
          resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 1, memory: 1.5Gi}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: api, namespace: api}
spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{ports: [{port: http}]}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: 'team:Readers'}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects: [{kind: Group, apiGroup: rbac.authorization.k8s.io, name: readers}]
`) as Right[]

interface Right {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: { readonly name: string }
}

for (const object of RIGHT) {
  test(`a right ${object.kind} passes`, () => assert.deepEqual(validateObjects([object]), []))
}

type Wrong = readonly [path: string, value: unknown, said: string]
/** By kind: what its right object gets at a path (or loses there), and what is then said of it. */
const WRONG: Readonly<Record<string, readonly Wrong[]>> = {
  Deployment: [
    ['spec.replica', 2, '/spec/replica is an unknown field'],
    ['spec.replicas', '2', '/spec/replicas must be integer'],
    ['spec.replicas', 2 ** 31, '/spec/replicas must match format "int32"'],
    ['spec.replicas', null, '/spec/replicas must be integer'],
    ['spec.selector', undefined, '/spec/selector is required'],
    ['spec.template.spec.containers.0.nme', 'a', '/spec/template/spec/containers/0/nme is an unknown field'],
    ['spec.template.spec.containers.0.imagePullPolicy', 'always', 'must be one of Always, IfNotPresent'],
    ['spec.template.spec.containers.0.resources.limits.memory', '1 GB', '/limits/memory must match pattern'],
    ['spec.template.spec.containers.1', { name: 'api' }, '/containers has two items with the same key'],
    [
      'spec.template.metadata.labels.app',
      'a b',
      '/spec/template/metadata/labels: "a b" is not a valid value',
    ],
    ['spec.strategy.rollingUpdate.maxSurge', true, '/maxSurge must be integer,string'],
    ['apiVersion', 'apps/v1beta1', 'no such kind in apps/v1beta1'],
    ['kind', 'Deploy', 'no such kind in apps/v1'],
    ['metadata', undefined, 'has no apiVersion, kind or metadata'],
    ['metadata.namespace', undefined, '/metadata/namespace is not a valid namespace'],
    ['metadata.name', undefined, '/metadata/name is not a valid name'],
    ['metadata.name', 'Api', '/metadata/name is not a valid name'],
    ['metadata.name', 'a'.repeat(254), '/metadata/name is not a valid name'],
    ['metadata.label', {}, '/metadata/label is an unknown field'],
  ],
  Service: [
    ['metadata.name', '1api', '/metadata/name is not a valid name'],
    ['spec.type', 'clusterIP', '/spec/type must be one of ClusterIP'],
  ],
  Namespace: [
    ['metadata.name', 'a.b', '/metadata/name is not a valid name'],
    ['metadata.namespace', 'a', '/metadata/namespace: the kind has none'],
    ['metadata.labels.a/b/c', 'x', '/metadata: "a/b/c" is not a valid key'],
    ['metadata.labels.team', 'a'.repeat(64), 'is not a valid value'],
    ['metadata.labels.team', true, '/metadata/labels/team must be string'],
    ['metadata.annotations', { 'a b': '' }, '/metadata: "a b" is not a valid key'],
  ],
  ConfigMap: [
    ['data.count', 1, '/data/count must be string'],
    ['data.a/b', '', '/data: "a/b" is not a valid key'],
  ],
  Secret: [['data.token', 'not base64!', '/data/token must match format "byte"']],
  ClusterRoleBinding: [
    ['roleRef.name', undefined, '/roleRef/name is required'],
    ['metadata.name', 'a/b', '/metadata/name is not a valid name'],
  ],
  NetworkPolicy: [['spec.ingress.0.from', {}, '/spec/ingress/0/from must be array']],
  ServiceMonitor: [
    ['spec.endpoints.0.interval', '30 s', '/spec/endpoints/0/interval must match pattern'],
    ['spec.selectors', {}, '/spec/selectors is an unknown field'],
  ],
  PrometheusRule: [['spec.groups.0.partial_response_strategy', 'stop', 'must match pattern']],
  Alert: [['spec.eventSources.0.kind', 'Deployment', '/spec/eventSources/0/kind must be one of']],
  Receiver: [['spec.secretRef', undefined, 'secretRef is required when type is not generic-oidc']],
  OCIRepository: [
    ['spec.url', 'https://registry.example.com/podinfo', '/spec/url must match pattern'],
    ['spec.interval', '1d', '/spec/interval must match pattern'],
    ['spec.layerSelector.operation', 'unpack', 'must be one of extract, copy'],
  ],
  HelmRepository: [['spec.url', 'charts.example.com', '/spec/url must match pattern']],
  HelmRelease: [
    [
      'spec.chart',
      { spec: { chart: 'a', sourceRef: { kind: 'HelmRepository', name: 'a' } } },
      'either chart or chartRef must be set',
    ],
    ['spec.valuesFrom.0.targetPath', 'a b', '/spec/valuesFrom/0/targetPath must match pattern'],
    ['spec.valuesFrom.0.targetPath', 'a'.repeat(251), 'must NOT have more than 250 characters'],
    ['spec.valuesFrom.0.value', 'a', '/spec/valuesFrom/0/value is an unknown field'],
    [
      'spec.upgrade',
      { strategy: { name: 'RemediateOnFailure', retryInterval: '1m' } },
      '.retryInterval can only be set',
    ],
  ],
  Kustomization: [
    ['spec.prune', undefined, '/spec/prune is required'],
    ['spec.kubeConfig', {}, 'exactly one of spec.kubeConfig.configMapRef or spec.kubeConfig.secretRef'],
    ['spec.postBuild.substitute.replicas', 2, '/spec/postBuild/substitute/replicas must be string'],
  ],
  FluxInstance: [
    ['metadata.name', 'flux-a', "the only accepted name for a FluxInstance is 'flux'"],
    ['spec.sync.provider', 'github', "'github' is only supported for GitRepository"],
  ],
  ResourceSet: [
    ['spec.resources', undefined, 'at least one of steps, resources or resourcesTemplate must be set'],
    ['spec.inputsFrom.0.name', undefined, '/spec/inputsFrom/0 at least one of name or selector must be set'],
    ['spec.inputsFrom.0.selector', {}, '/spec/inputsFrom/0 cannot set both name and selector'],
    [
      'spec.inputStrategy',
      { name: 'Flatten', includeEmptyProviders: true },
      'only applies when name is Permute',
    ],
    ['spec.dependsOn.0.ready', 'true', '/spec/dependsOn/0/ready must be boolean'],
  ],
  ResourceSetInputProvider: [
    ['spec.url', 'http://api.example.com', "/spec spec.url must use 'https://' unless spec.insecure is true"],
    [
      'spec.url',
      'oci://api.example.com',
      "must start with 'http://' or 'https://' when spec.type is 'ExternalService'",
    ],
    ['spec.url', 'api.example.com', '/spec/url must match pattern'],
    ['spec.url', undefined, "spec.url must not be empty when spec.type is not 'Static'"],
    ['spec.type', 'Static', "spec.url must be empty when spec.type is 'Static'"],
    ['spec.type', 'External', '/spec/type must be one of Static'],
    ['spec.serviceAccountName', 'a', 'cannot specify spec.serviceAccountName'],
    ['spec.selectors', [{ name: 'a' }], 'spec.selectors must not be set'],
    ['spec.filter.limit', 10_001, '/spec/filter/limit must be <= 10000'],
    ['spec.interval', '5m', '/spec/interval is an unknown field'],
  ],
}

const wrongs = Object.entries(WRONG).flatMap(([kind, list]) => list.map((wrong) => [kind, ...wrong] as const))

suite('wrong objects are refused, each for its own reason:', () => {
  for (const [kind, path, value, said] of wrongs) {
    const shown = JSON.stringify(value)?.slice(0, 60) ?? 'absent'
    test(`${kind} with ${path} ${shown}`, () => {
      const problems = validateObjects([withValue(rightOne(kind), path, value)])
      assert.ok(problems[0]?.includes(said), `${said}, not: ${problems.join('\n')}`)
    })
  }
})

test('a provider may use http when it says that this is insecure', () => {
  const provider = withValue(rightOne('ResourceSetInputProvider'), 'spec.url', 'http://api.example.com')
  assert.deepEqual(validateObjects([withValue(provider, 'spec.insecure', true)]), [])
})

test('an object that is there twice is refused, also in another version', () => {
  const one = rightOne('ConfigMap')
  assert.deepEqual(validateObjects([one, withValue(one, 'metadata.namespace', 'other')]), [])
  assert.deepEqual(validateObjects([one, one]), ['ConfigMap api/api.v1: is there twice'])
  const spec = { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'api' } }
  const scaler = { kind: 'HorizontalPodAutoscaler', metadata: { name: 'api', namespace: 'api' }, spec }
  const versions = ['autoscaling/v1', 'autoscaling/v2'].map((apiVersion) => ({ apiVersion, ...scaler }))
  assert.deepEqual(validateObjects(versions), ['HorizontalPodAutoscaler api/api: is there twice'])
})

test('the other kinds of Flux, whose rules nobody broke above, can be checked, too', () => {
  const others = {
    'fluxcd.controlplane.io/v1': ['FluxReport'],
    'image.toolkit.fluxcd.io/v1': ['ImagePolicy', 'ImageRepository', 'ImageUpdateAutomation'],
    'notification.toolkit.fluxcd.io/v1beta3': ['Provider'],
    'source.extensions.fluxcd.io/v1beta1': ['ArtifactGenerator'],
    'source.toolkit.fluxcd.io/v1': ['Bucket', 'ExternalArtifact', 'GitRepository', 'HelmChart'],
  }
  for (const [apiVersion, kinds] of Object.entries(others)) {
    for (const kind of kinds) {
      const object = { apiVersion, kind, metadata: { name: 'flux', namespace: 'flux-system' }, spec: 0 }
      assert.deepEqual(validateObjects([object]), [`${kind} flux-system/flux: /spec must be object`])
    }
  }
})

test('what is no object at all is refused', () => {
  for (const value of [null, 'text', [], {}]) assert.equal(validateObjects([value]).length, 1)
})

const RESOURCE_SET = `
apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: namespaces, namespace: flux-system}
spec:
  inputsFrom: [{kind: ResourceSetInputProvider, name: namespaces}]
  resourcesTemplate: |
    <<- if inputs.enabled >>
    apiVersion: v1
    kind: Namespace
    metadata:
      name: << inputs.id | quote >>
    <<- end >>
`

test('what Flux Operator renders comes in the order of the inputs and can be checked', async () => {
  const ids = ['b', 'a', 'C']
  const objects = await renderResourceSet(
    RESOURCE_SET,
    ids.map((id) => ({ id, enabled: true })),
  )
  assert.deepEqual(
    (objects as Right[]).map(({ metadata }) => metadata.name),
    ids,
  )
  assert.deepEqual(validateObjects(objects), ['Namespace C: /metadata/name is not a valid name'])
})

test('inputs that render nothing, and no inputs, give no objects', async () => {
  assert.deepEqual(await renderResourceSet(RESOURCE_SET, [{ id: 'a', enabled: false }]), [])
  assert.deepEqual(await renderResourceSet(RESOURCE_SET, []), [])
})

test('a template that Flux Operator cannot render is thrown with its reason', async () => {
  await assert.rejects(renderResourceSet(RESOURCE_SET, [{ id: 'a' }]), /map has no entry for key "enabled"/)
})

function rightOne(kind: string): Right {
  const object = RIGHT.find((right) => right.kind === kind)
  assert.ok(object, `no right ${kind}`)
  return object
}

/** A copy with another value at a path, or without one there. */
function withValue<T>(object: T, path: string, value: unknown): T {
  const copy = structuredClone(object)
  const steps = path.split('.')
  const last = steps.pop() as string
  // biome-ignore lint/suspicious/noExplicitAny: a walk through anything
  let at: any = copy
  for (const step of steps) at = at[step] ??= {}
  if (value === undefined) delete at[last]
  else at[last] = value
  return copy
}
