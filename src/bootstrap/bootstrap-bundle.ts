// The bootstrap bundle: manifests, as a stream of YAML, that a cluster applies once to poll the service from then on.
import type { Document as Manifest } from 'yaml'
import type { JsonObject } from '../base/json.ts'
import { POLL_BASE } from '../base/urls.ts'
import type { ClusterType, Document, Types } from '../domain/types/resource-type.ts'
import { reportFloor, reportSet } from './ack-report.ts'
import { marked, warnOfUnmarked } from './answer-marks.ts'
import { IDENTITY, NAMESPACE, PHONE_HOME, TOKEN_SECRET } from './bundle-names.ts'
import type { BundleOptions } from './bundle-options.ts'
import { annotated, manifest, quoted, templateText, toText } from './bundle-yaml.ts'
import { eventSets } from './event-alerts.ts'
import { FLUX_API, providerTemplate, typeProvider } from './input-provider.ts'
import type { Template } from './template.ts'

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
      ? [
          ...endpoints.map((name) => typeProvider(name, `${polled}/${name}`, options)),
          ...talkingBack((name) => `${polled}/${name}`, options),
        ].map(manifest)
      : [identityProvider(), phoneHome(endpoints, options)]),
    ...(options.ack === 'off' ? [] : [manifest(reportSet(options))]),
    ...carried
      .filter((template) => template.endpoints.length > 0)
      .map((template) => marked(template, templates, options)),
  ]
  const texts = manifests.map((each) => toText(isConcrete ? each : keptBySource(each)))
  return [heading(cluster, options, warnOfBundle(types, templates, options.ack !== 'off')), ...texts].join(
    '---\n',
  )
}

/** What is needed beside the providers of types to tell the service what came of their answers. */
function talkingBack(urlOf: (name: string) => string, options: BundleOptions): JsonObject[] {
  return [
    ...(options.ack === 'off' ? [] : [reportFloor(urlOf('ack'), options)]),
    ...(options.events ? eventSets(urlOf('events'), options) : []),
  ]
}

/** Returns what a user should know of a bundle before clusters get it. */
export function warnOfBundle(types: Types, templates: readonly Template[], reports: boolean): string[] {
  return [...warnOfUnread(types, templates), ...(reports ? warnOfUnmarked(templates) : [])]
}

/** Returns a warning for each endpoint that clusters would poll and no template reads. */
function warnOfUnread(types: Types, templates: readonly Template[]): string[] {
  const isRead = (name: string): boolean => templates.some(({ endpoints }) => endpoints.includes(name))
  return types.delivered
    .map(({ delivery }) => delivery.endpoint)
    .filter((name) => !isRead(name))
    .map((name) => `Nothing is made of ${name} yet: there is no template that reads it.`)
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
    ' The token belongs here, under `token` to poll with and under `headers` to send events with:',
    ` kubectl -n ${NAMESPACE} patch secret ${TOKEN_SECRET} -p '{"stringData":{"token":"…","headers":"Authorization: Bearer …"}}'`,
  ].join('\n')
  return secret
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

/** The ResourceSet that renders from the identity what the concrete flavor has as it is. */
function phoneHome(endpoints: readonly string[], options: BundleOptions): Manifest {
  const source = { apiVersion: FLUX_API, kind: 'ResourceSetInputProvider', name: IDENTITY }
  const url = (name: string): string => `<< printf "%s/%s" inputs.${POLL_URL} ${name} | quote >>`
  const each = providerTemplate(typeProvider('<< . | quote >>', url('.'), options), `inputs.${POLL_URL}`)
  return manifest({
    apiVersion: FLUX_API,
    kind: 'ResourceSet',
    metadata: { name: PHONE_HOME, namespace: NAMESPACE },
    spec: {
      inputsFrom: [source],
      dependsOn: [{ ...source, namespace: NAMESPACE, ready: true }],
      resourcesTemplate: [
        `<<- range list ${endpoints.map((name) => `"${name}"`).join(' ')} >>\n---\n`,
        each,
        '<<- end >>\n',
        ...talkingBack((name) => url(`"${name}"`), options).map((object) => `---\n${templateText(object)}`),
      ].join(''),
    },
  })
}

/**
 * Annotates a manifest that comes from a Git repository or an artifact. Flux must not prune it, or one wrong commit
 * would empty all clusters. Variables are substituted in the identity alone, whatever a template holds.
 */
function keptBySource(original: Manifest): Manifest {
  const isIdentity = original.getIn(['metadata', 'name']) === IDENTITY
  return annotated(original, {
    'kustomize.toolkit.fluxcd.io/prune': 'disabled',
    ...(!isIdentity && { 'kustomize.toolkit.fluxcd.io/substitute': 'disabled' }),
  })
}
