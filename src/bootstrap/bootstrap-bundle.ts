// The bootstrap bundle: manifests, as a stream of YAML, that a cluster applies once to poll the service from then on.
import { isMap, Document as Manifest, Scalar, stringify } from 'yaml'
import type { JsonObject } from '../base/json.ts'
import { POLL_BASE } from '../base/urls.ts'
import { MAX_INPUTS } from '../domain/guards/answer-limits.ts'
import type { ClusterType, Document, Types } from '../domain/types/resource-type.ts'
import { IDENTITY, NAMESPACE, PHONE_HOME, TOKEN_SECRET } from './bundle-names.ts'
import type { Template } from './load-templates.ts'

export interface BundleOptions {
  /**
   * `concrete` has the cluster's own URLs. `identity` is the same for every cluster, which learns its name from a
   * ConfigMap.
   */
  readonly flavor: 'concrete' | 'identity'
  /** Where clusters reach the service. */
  readonly apiUrl: string
  /** How often each provider polls, as Flux writes durations. */
  readonly interval: string
  /** The existing Secret that holds the token; without it the bundle has a Secret of its own, still empty. */
  readonly tokenSecret: string | undefined
  /** The Secret with a client certificate, or with the CA that signed the server's certificate. */
  readonly certSecret: string | undefined
  /** False where Flux is installed already. */
  readonly fluxInstance: boolean
}

const FLUX_API = 'fluxcd.controlplane.io/v1'
const API_URL = 'INTERNAL_API_URL'
const DNS = 'CLUSTER_DNS'
const POLL_URL = 'POLL_URL'

/** Equal input gives equal text, so that bundles can be kept in Git. */
export function renderBundle(
  types: Types,
  templates: readonly Template[],
  cluster: Document,
  options: BundleOptions,
): string {
  const isConcrete = options.flavor === 'concrete'
  const carried = templates.filter(({ kind }) => options.fluxInstance || kind !== 'FluxInstance')
  const endpoints = types.delivered.map(({ delivery }) => delivery.endpoint)
  const polled = `${options.apiUrl}${POLL_BASE}/${cluster[types.cluster.dns]}`
  const manifests = [
    manifest({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }),
    ...(isConcrete ? [identityMap(types.cluster, cluster, options)] : []),
    ...(options.tokenSecret === undefined ? [emptySecret(options)] : []),
    ...carried.filter((template) => template.endpoints.length === 0).map(({ yaml }) => yaml),
    ...(isConcrete
      ? endpoints.map((name) => manifest(provider(name, `${polled}/${name}`, options)))
      : [identityProvider(), phoneHome(endpoints, options)]),
    ...carried.filter((template) => template.endpoints.length > 0).map(({ yaml }) => yaml),
  ]
  const texts = manifests.map((each) => toText(isConcrete ? each : keptBySource(each)))
  return [heading(cluster, options, warnOfUnread(types, templates)), ...texts].join('---\n')
}

/** Returns a warning for each endpoint that clusters would poll and no template reads. */
export function warnOfUnread(types: Types, templates: readonly Template[]): string[] {
  const isRead = (name: string): boolean => templates.some(({ endpoints }) => endpoints.includes(name))
  return types.delivered
    .map(({ delivery }) => delivery.endpoint)
    .filter((name) => !isRead(name))
    .map((name) => `Nothing is made of ${name} yet: there is no template that reads it.`)
}

/** For Kubernetes, which reads YAML 1.1: `no` is a text only in quotes. */
const YAML = { version: '1.1' } as const

function manifest(content: object): Manifest {
  // Go reads more texts as numbers than the YAML specification does.
  const quoteNumbers = (_key: unknown, value: unknown): unknown =>
    typeof value === 'string' && /^[\d.+-]/.test(value) ? quoted(value) : value
  return new Manifest(content, quoteNumbers, YAML)
}

function quoted(text: string): Scalar {
  const scalar = new Scalar(text)
  scalar.type = 'QUOTE_DOUBLE'
  return scalar
}

function toText(of: Manifest): string {
  return of.toString({ lineWidth: 0 })
}

function heading(cluster: Document, options: BundleOptions, missing: readonly string[]): string {
  const lines =
    options.flavor === 'concrete'
      ? [
          `Bootstrap of cluster ${cluster.id}: apply it once, when the Flux Operator is there.`,
          `The cluster then polls ${options.apiUrl} every ${options.interval}.`,
        ]
      : [
          'Bootstrap of any cluster, told who it is by the values of one object: the provider cluster-identity.',
          'A Flux Kustomization fills it in by substituting from the ConfigMap cluster-identity; with the Flux Operator',
          `alone, fill in these two before applying: envsubst '\${${DNS}} \${${API_URL}}' < bootstrap.yaml`,
        ]
  return [...lines, ...missing].map((line) => `# ${line}\n`).join('')
}

/** The ConfigMap with the cluster's identity: all that a provisioning layer has to give to a cluster. */
function identityMap(type: ClusterType, cluster: Document, { apiUrl }: BundleOptions): Manifest {
  const data = Object.fromEntries(
    type.input.map(([name, property]) => [variableOf(name), String(cluster[property] ?? '')]),
  )
  return manifest({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: IDENTITY, namespace: NAMESPACE },
    data: { ...data, [DNS]: String(cluster[type.dns]), [API_URL]: apiUrl },
  })
}

function variableOf(name: string): string {
  return name === 'name' || name === 'dns' ? `CLUSTER_${name.toUpperCase()}` : name.toUpperCase()
}

/** A Secret without data: applying it again keeps the token that was put there. */
function emptySecret({ flavor }: BundleOptions): Manifest {
  const annotations = flavor === 'identity' && {
    annotations: { 'kustomize.toolkit.fluxcd.io/ssa': 'IfNotPresent' },
  }
  const secret = manifest({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: TOKEN_SECRET, namespace: NAMESPACE, ...annotations },
    type: 'Opaque',
  })
  secret.commentBefore = [
    ' The token to poll with belongs here, under the key `token`:',
    ` kubectl -n ${NAMESPACE} patch secret ${TOKEN_SECRET} -p '{"stringData":{"token":"…"}}'`,
  ].join('\n')
  return secret
}

function provider(name: string, url: string, options: BundleOptions): JsonObject {
  const { interval, tokenSecret = TOKEN_SECRET, certSecret } = options
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSetInputProvider',
    metadata: {
      name,
      namespace: NAMESPACE,
      annotations: { 'fluxcd.controlplane.io/reconcileEvery': interval },
    },
    spec: {
      type: 'ExternalService',
      url,
      ...(url.startsWith('http://') && { insecure: true }),
      secretRef: { name: tokenSecret },
      ...(certSecret !== undefined && { certSecretRef: { name: certSecret } }),
      // Flux would cut the list off after 100, and delete the rest.
      filter: { limit: MAX_INPUTS },
    },
  }
}

/**
 * The only manifest that says which cluster this is. It holds a URL, which is a text in YAML whatever the cluster's
 * name is.
 */
function identityProvider(): Manifest {
  return manifest({
    apiVersion: FLUX_API,
    kind: 'ResourceSetInputProvider',
    metadata: { name: IDENTITY, namespace: NAMESPACE },
    spec: {
      type: 'Static',
      defaultValues: { [POLL_URL]: quoted(`\${${API_URL}}${POLL_BASE}/\${${DNS}}`) },
    },
  })
}

/** The ResourceSet that renders the providers from the identity. */
function phoneHome(endpoints: readonly string[], options: BundleOptions): Manifest {
  const url = `<< printf "%s/%s" inputs.${POLL_URL} . | quote >>`
  const each = stringify(provider('<< . | quote >>', url, options), { ...YAML, lineWidth: 0 })
  const insecure = `  <<- if hasPrefix "http://" inputs.${POLL_URL} >>\n  insecure: true\n  <<- end >>\n`
  const source = { apiVersion: FLUX_API, kind: 'ResourceSetInputProvider', name: IDENTITY }
  return manifest({
    apiVersion: FLUX_API,
    kind: 'ResourceSet',
    metadata: { name: PHONE_HOME, namespace: NAMESPACE },
    spec: {
      inputsFrom: [source],
      dependsOn: [{ ...source, namespace: NAMESPACE, ready: true }],
      resourcesTemplate: [
        `<<- range list ${endpoints.map((name) => `"${name}"`).join(' ')} >>\n---\n`,
        each.replace('  secretRef:', `${insecure}  secretRef:`),
        '<<- end >>\n',
      ].join(''),
    },
  })
}

/**
 * Annotates a manifest that comes from a Git repository or an artifact. Flux must not prune it, or one wrong commit
 * would empty all clusters. Variables are substituted in the identity alone, whatever a template holds.
 */
function keptBySource(original: Manifest): Manifest {
  const copy = original.clone()
  const place = ['metadata', 'annotations']
  // The annotations are missing, or an alias.
  if (!isMap(copy.getIn(place, true))) {
    const { annotations } = original.toJS().metadata
    copy.setIn(place, copy.createNode(annotations ?? {}))
  }
  const annotate = (name: string): void =>
    copy.setIn([...place, `kustomize.toolkit.fluxcd.io/${name}`], 'disabled')
  annotate('prune')
  if (copy.getIn(['metadata', 'name']) !== IDENTITY) annotate('substitute')
  return copy
}
