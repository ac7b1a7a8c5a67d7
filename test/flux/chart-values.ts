// Values of the chart that tests render it with: as few as it takes, and as many as there are.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

export const networkPolicy = readFileSync(
  join(import.meta.dirname, '../../examples/network-policies/network_policy.yaml'),
  'utf8',
)

export const required = {
  image: { repository: 'registry.example.com/flux-resourceset' },
  auth: { existingSecret: 'flux-resourceset-tokens' },
}
export const onPostgres = {
  ...required,
  store: 'postgres',
  database: {
    host: 'flux-resourceset-db-rw',
    existingSecret: 'flux-resourceset-db-app',
    caSecret: 'flux-resourceset-db-ca',
  },
}
export const toTheFull = {
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
  networkPolicy: { database: { to: [{ ipBlock: { cidr: '10.30.0.0/16' } }], port: 6432 } },
}
const namespaceOf = (name: string) => ({
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': name } },
})
export const everything = {
  ...required,
  auth: { readToken: 'r'.repeat(16), writeToken: 'w'.repeat(16) },
  image: { ...required.image, digest: `sha256:${'0'.repeat(64)}`, pullPolicy: 'Always' },
  imagePullSecrets: [{ name: 'registry' }],
  externalUrl: 'https://fleet.example.com',
  demo: true,
  brakePercent: 2.5,
  brakeGroupPercent: 12.5,
  status: { lateAfter: 2.5, offlineAfter: 5, retention: '7d', unobservedSelector: 'airgap=true' },
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
  adminPort: 9090,
  listenHost: '[::]',
  tmpSize: '20Gi',
  access: { rules: { certificates: [{ name: '*.agents.example.com', role: 'cluster', cluster: '*' }] } },
  networkPolicy: {
    from: [namespaceOf('ingress-nginx')],
    adminFrom: [namespaceOf('monitoring')],
    egress: [{ to: [{ ipBlock: { cidr: '198.51.100.7/32' } }], ports: [{ port: 8443, protocol: 'TCP' }] }],
  },
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

/** TLS, client certificates and people who log in, on PostgreSQL. */
export const secured = {
  ...onPostgres,
  tls: {
    existingSecret: 'flux-resourceset-tls',
    clientCaSecret: 'flux-resourceset-client-ca',
    clientAuth: 'required',
    http2: true,
  },
  oidc: {
    issuer: 'https://keycloak.auth.svc.cluster.local/realms/fleet',
    audience: 'fleet',
    clientId: 'fleet-cli',
    roleClaim: 'realm_access.roles',
    usernameClaim: 'preferred_username',
  },
  access: { rules: { oidc: [{ claim: 'admins', role: 'admin' }] } },
  serviceMonitor: { enabled: true },
  networkPolicy: { adminFrom: [namespaceOf('monitoring')], oidc: { port: 8443 } },
}
