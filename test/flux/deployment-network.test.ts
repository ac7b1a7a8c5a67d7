// The NetworkPolicies of deploy/, asked as a network plugin would: who reaches which port, and what pods reach.
import assert from 'node:assert/strict'
import { BlockList, isIPv6 } from 'node:net'
import { describe, test } from 'node:test'
import { parse } from 'yaml'
import { onPostgres, required, secured } from './chart-values.ts'
import {
  type Any,
  blockWith,
  CASES,
  configOf,
  deployed,
  listenersOf,
  matches,
  NAMESPACE,
  ofKind,
  podsOf,
  portOf,
  type Rendered,
  readPage,
  template,
} from './rendered-deployments.ts'
import { parseObjects } from './tools.ts'

type Labels = Readonly<Record<string, string>>
/** Somebody at the other end: an address outside, or a pod of a namespace. */
type Peer = { readonly address: string } | { readonly namespace: string; readonly labels: Labels }
interface Call {
  readonly peer: Peer
  readonly port: number
  readonly protocol?: 'TCP' | 'UDP'
}

const podIn = (namespace: string, labels: Labels = {}): Peer => ({ namespace, labels })
const STRANGERS: readonly Peer[] = [
  { address: '198.18.0.99' },
  { address: '169.254.169.254' },
  podIn('elsewhere', { 'k8s-app': 'kube-dns', 'cnpg.io/cluster': 'flux-resourceset-db' }),
]
const DNS = podIn('kube-system', { 'k8s-app': 'kube-dns' })
const PROMETHEUS = podIn('monitoring', { 'app.kubernetes.io/name': 'prometheus' })
/** Who the hosts are that configurations name, and the port where it is not that of the URL. */
const HOSTS: Readonly<Record<string, { readonly peer: Peer; readonly port?: number }>> = {
  'flux-resourceset-db-rw': { peer: podIn(NAMESPACE, { 'cnpg.io/cluster': 'flux-resourceset-db' }) },
  'db.example.com': { peer: { address: '10.30.1.7' }, port: 6432 },
  'fleet.cluster-c9example.eu-central-1.rds.example.com': { peer: { address: '10.20.200.1' } },
  'keycloak.auth.svc.cluster.local': { peer: podIn('auth', { app: 'keycloak' }), port: 8443 },
  'login.example.com': { peer: { address: '203.0.113.10' } },
  'fleet.example.com': { peer: { address: '192.0.2.1' } },
  'fleet-admin.example.com': { peer: { address: '198.51.100.20' } },
}

/** What a pod's process will call, by its configuration. */
function callsOf(rendered: Rendered, container: Any): Call[] {
  const { store, oidc, mirror } = configOf(rendered, container)
  const urls = [store.backend === 'postgres' && store.url, oidc?.issuer, mirror?.url]
  return urls.flatMap((text) => {
    if (!text) return []
    const { hostname, port } = new URL(text)
    const host = HOSTS[hostname]
    assert.ok(host, `nobody knows who ${hostname} is`)
    return [{ peer: host.peer, port: host.port ?? Number(port || 443) }]
  })
}

const policiesOf = (rendered: Rendered, labels: Labels, type: 'Ingress' | 'Egress'): Any[] =>
  ofKind(rendered, 'NetworkPolicy').filter(
    ({ spec }) => matches(labels, spec.podSelector) && spec.policyTypes.includes(type),
  )

function isOneOf(peer: Peer, peers: readonly Any[] | undefined): boolean {
  if (peers === undefined) return true
  assert.ok(peers.length > 0, 'an empty list of peers is everybody')
  return peers.some(({ ipBlock, namespaceSelector, podSelector }) => {
    if (ipBlock) return 'address' in peer && isInside(peer.address, ipBlock)
    if ('address' in peer) return false
    const inNamespace = namespaceSelector
      ? matches({ 'kubernetes.io/metadata.name': peer.namespace }, namespaceSelector)
      : peer.namespace === NAMESPACE
    return inNamespace && matches(peer.labels, podSelector ?? {})
  })
}

function isInside(address: string, { cidr, except = [] }: { cidr: string; except?: string[] }): boolean {
  const isIn = (network: string): boolean => {
    const [start = '', prefix] = network.split('/')
    const type = isIPv6(start) ? 'ipv6' : 'ipv4'
    const list = new BlockList()
    list.addSubnet(start, Number(prefix), type)
    return list.check(address, type)
  }
  return isIn(cidr) && !except.some(isIn)
}

const hasPort = (ports: readonly Any[], port: number, protocol: string, container?: Any): boolean =>
  ports.some(
    (each) => each.protocol === protocol && (container ? portOf(container, each.port) : each.port) === port,
  )

interface Pod {
  readonly labels: Labels
  readonly spec: Any
}

function letsIn(rendered: Rendered, { labels, spec }: Pod, { peer, port, protocol = 'TCP' }: Call): boolean {
  return policiesOf(rendered, labels, 'Ingress').some((policy) =>
    (policy.spec.ingress ?? []).some(
      ({ from, ports }: Any) => hasPort(ports, port, protocol, spec.containers[0]) && isOneOf(peer, from),
    ),
  )
}

function letsOut(rendered: Rendered, { labels }: Pod, { peer, port, protocol = 'TCP' }: Call): boolean {
  return policiesOf(rendered, labels, 'Egress').some((policy) =>
    (policy.spec.egress ?? []).some(
      ({ to, ports }: Any) => hasPort(ports, port, protocol) && isOneOf(peer, to),
    ),
  )
}

const PROMISES: Record<string, (rendered: Rendered) => void> = {
  'shuts the pods of the service, and no other, in both directions'(rendered) {
    for (const { labels, deployment } of podsOf(rendered))
      for (const type of ['Ingress', 'Egress'] as const)
        assert.equal(policiesOf(rendered, labels, type).length > 0, deployment !== undefined)
  },

  'lets an ingress in to the API, and the pods of helm test'(rendered) {
    const tests = podsOf(rendered).filter(({ deployment }) => !deployment)
    const peers = [podIn('ingress-nginx'), ...tests.map(({ labels }) => podIn(NAMESPACE, labels))]
    for (const pod of deployed(rendered)) {
      const { api: port } = listenersOf(rendered, pod.spec.containers[0])
      for (const peer of peers) assert.ok(letsIn(rendered, pod, { peer, port }))
    }
  },

  // Kubernetes lets the kubelet of a pod's node through by itself.
  'lets Prometheus in to metrics where it is to read them, and nobody else'(rendered) {
    const isRead = ofKind(rendered, 'ServiceMonitor').length > 0
    for (const pod of deployed(rendered)) {
      const { admin: port = 0 } = listenersOf(rendered, pod.spec.containers[0])
      assert.equal(letsIn(rendered, pod, { peer: PROMETHEUS, port }), isRead)
      for (const peer of STRANGERS) assert.equal(letsIn(rendered, pod, { peer, port }), false)
    }
  },

  'lets pods out to whatever their settings name'(rendered) {
    for (const pod of deployed(rendered)) {
      for (const call of callsOf(rendered, pod.spec.containers[0]))
        assert.ok(letsOut(rendered, pod, call), `${JSON.stringify(call)} is shut out`)
    }
  },

  'lets pods ask for names where they have somebody to call, and only the DNS of the cluster'(rendered) {
    for (const pod of deployed(rendered)) {
      const policies = policiesOf(rendered, pod.labels, 'Egress')
      const calls = callsOf(rendered, pod.spec.containers[0]).length > 0
      const isAllowed = calls || policies.some(({ spec }) => spec.egress?.length > 0)
      for (const protocol of ['TCP', 'UDP'] as const) {
        assert.equal(letsOut(rendered, pod, { peer: DNS, port: 53, protocol }), isAllowed)
        for (const peer of STRANGERS)
          assert.equal(letsOut(rendered, pod, { peer, port: 53, protocol }), false)
      }
    }
  },

  'lets pods out to nobody else'(rendered) {
    for (const pod of deployed(rendered)) {
      const calls = callsOf(rendered, pod.spec.containers[0])
      const others = Object.values(HOSTS).filter(({ peer }) => !calls.some((call) => call.peer === peer))
      for (const peer of [...STRANGERS, DNS, ...others.map((host) => host.peer)])
        for (const port of [80, 443, 5432, 6432, 8443])
          assert.equal(letsOut(rendered, pod, { peer, port }), false, JSON.stringify([peer, port]))
    }
  },
}

for (const [name, { secrets, yaml: renderCase }] of Object.entries(CASES)) {
  test(name, async (t) => {
    const yaml = await renderCase(t)
    const rendered: Rendered = { yaml, objects: parseObjects(yaml), secrets }
    for (const [promise, check] of Object.entries(PROMISES)) await t.test(promise, () => check(rendered))
  })
}

test('the backup of docs/disaster-recovery.md reaches the database beside the overlay postgres-ha', async (t) => {
  const there = {
    yaml: '',
    objects: parseObjects((await CASES['the overlay postgres-ha']?.yaml(t)) ?? ''),
    secrets: [],
  }
  const job = parse(blockWith('kind: CronJob', readPage('disaster-recovery')))
  const { metadata, spec } = job.spec.jobTemplate.spec.template
  const pod = { labels: metadata.labels, spec }
  const { peer } = HOSTS['flux-resourceset-db-rw'] as { peer: Peer }
  assert.ok(letsOut(there, pod, { peer, port: 5432 }))
  assert.ok(letsOut(there, pod, { peer: DNS, port: 53, protocol: 'UDP' }))
})

async function rendered(values: object): Promise<Rendered> {
  const yaml = await template(values)
  return { yaml, objects: parseObjects(yaml), secrets: [] }
}

describe('the NetworkPolicy of the chart', () => {
  test('finds a database in another namespace, or at an address, by its host', async () => {
    for (const [host, peer] of [
      ['fleet-db-rw.databases.svc', podIn('databases')],
      ['fleet-db-rw.databases.svc.cluster.local', podIn('databases')],
      ['10.9.8.7', { address: '10.9.8.7' }],
    ] as const) {
      const there = await rendered({ ...onPostgres, database: { ...onPostgres.database, host } })
      for (const pod of deployed(there)) {
        assert.ok(letsOut(there, pod, { peer, port: 5432 }), host)
        assert.ok(!letsOut(there, pod, { peer: podIn(NAMESPACE), port: 5432 }))
      }
    }
  })

  test('finds an issuer at an address by its URL', async () => {
    for (const [host, address] of [
      ['10.9.8.7:9443', '10.9.8.7'],
      ['[fd00::7]:9443', 'fd00::7'],
    ] as const) {
      const oidc = { issuer: `https://${host}/x`, audience: 'fleet' }
      const there = await rendered({ ...required, oidc, access: secured.access })
      for (const pod of deployed(there)) {
        assert.ok(letsOut(there, pod, { peer: { address }, port: 9443 }), host)
        assert.ok(!letsOut(there, pod, { peer: podIn(NAMESPACE), port: 9443 }))
      }
    }
  })

  test('takes the port of an issuer from its URL, and addresses from the values', async () => {
    const to = [{ ipBlock: { cidr: '0.0.0.0/0', except: ['10.0.0.0/8'] } }]
    const oidc = { issuer: 'https://login.example.com:9443/x', audience: 'fleet' }
    const there = await rendered({
      ...secured,
      oidc,
      networkPolicy: { ...secured.networkPolicy, oidc: { to } },
    })
    for (const pod of deployed(there)) {
      const isWriter = pod.labels['app.kubernetes.io/component'] === 'crud'
      const [outside, inside] = [{ address: '203.0.113.10' }, { address: '10.1.2.3' }]
      assert.equal(letsOut(there, pod, { peer: outside, port: 9443 }), isWriter)
      assert.equal(letsOut(there, pod, { peer: outside, port: 443 }), false)
      assert.equal(letsOut(there, pod, { peer: inside, port: 9443 }), false)
    }
  })

  test('lets anybody in to the API, or those that the values name', async () => {
    for (const [from, isOpen] of [
      [[], true],
      [[{ podSelector: {} }], false],
    ] as const) {
      const there = await rendered({ ...secured, networkPolicy: { ...secured.networkPolicy, from } })
      for (const pod of deployed(there))
        for (const peer of STRANGERS) assert.equal(letsIn(there, pod, { peer, port: 8080 }), isOpen)
    }
  })

  test('asks for names elsewhere, as on OpenShift', async () => {
    const to = [{ namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'openshift-dns' } } }]
    const there = await rendered({ ...onPostgres, networkPolicy: { dns: { to, port: 5353 } } })
    for (const pod of deployed(there)) {
      for (const protocol of ['TCP', 'UDP'] as const) {
        assert.ok(letsOut(there, pod, { peer: podIn('openshift-dns'), port: 5353, protocol }))
        assert.ok(!letsOut(there, pod, { peer: DNS, port: 53, protocol }))
      }
    }
  })

  test('can be left out, and metrics are then read without it', async () => {
    const values = { ...required, serviceMonitor: { enabled: true }, networkPolicy: { enabled: false } }
    assert.deepEqual(ofKind(await rendered(values), 'NetworkPolicy'), [])
  })
})

describe('what a policy shuts out is noticed:', () => {
  test('Prometheus, an issuer, a database', async () => {
    for (const [promise, port] of [
      ['lets Prometheus in to metrics where it is to read them, and nobody else', 'admin'],
      ['lets pods out to whatever their settings name', 8443],
      ['lets pods out to whatever their settings name', 5432],
      ['lets pods ask for names where they have somebody to call, and only the DNS of the cluster', 53],
    ] as const) {
      const there = await rendered(secured)
      PROMISES[promise]?.(there)
      for (const { spec } of ofKind(there, 'NetworkPolicy'))
        for (const direction of ['ingress', 'egress'])
          spec[direction] = spec[direction]?.filter(({ ports }: Any) => ports[0].port !== port)
      assert.throws(() => PROMISES[promise]?.(there), promise)
    }
  })
})
