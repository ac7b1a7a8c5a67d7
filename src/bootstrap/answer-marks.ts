// Marks: small ResourceSets by which a ResourceSet says that it has applied a whole answer. The bundle adds them to the
// templates, so that those of users have them, too.
import { createHash } from 'node:crypto'
import { isMap, isSeq, type Document as Manifest, parseDocument } from 'yaml'
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import { ACK_LABEL, NAMESPACE } from './bundle-names.ts'
import type { BundleOptions } from './bundle-options.ts'
import { annotated, manifest, quoted, toText } from './bundle-yaml.ts'
import { FLUX_API } from './input-provider.ts'
import type { Template } from './template.ts'

const DIGEST = 'get inputs "answer_digest"'

/** Why the ResourceSet of a template cannot say what it has applied; undefined when it can. */
export function obstacleToMarks(spec: JsonObject, yaml: Manifest): string | undefined {
  const isWritten = spec.resources == null || isSeq(yaml.getIn(['spec', 'resources'], true))
  if (!isMap(yaml.get('spec', true)) || !isWritten) return 'its spec has aliases'
  if (Array.isArray(spec.inputsFrom) && spec.inputsFrom.length > 1) return 'it reads several providers'
  if (isObject(spec.inputStrategy) && spec.inputStrategy.name === 'Permute') return 'it permutes its inputs'
  if (spec.steps !== undefined) return 'it has steps'
  // The ResourceSet would wait for the mark, and the mark for the ResourceSet.
  if (spec.wait === true) return 'it has wait: true'
  if (keepsWhatItMade(spec.commonMetadata)) return 'it keeps what it no longer renders'
  if (spec.serviceAccountName !== undefined) return 'its service account may not make ResourceSets'
  return undefined
}

/** Whether nothing that a ResourceSet made is deleted: old marks would stay, too. */
function keepsWhatItMade(commonMetadata: Json | undefined): boolean {
  const annotations = isObject(commonMetadata) ? commonMetadata.annotations : undefined
  return isObject(annotations) && annotations['fluxcd.controlplane.io/prune'] === 'disabled'
}

/** Returns a warning for each endpoint whose answers no cluster can acknowledge. */
export function warnOfUnmarked(templates: readonly Template[]): string[] {
  return templates.flatMap(({ name, endpoints, obstacle }) =>
    obstacle === undefined
      ? []
      : endpoints.map(
          (endpoint) => `Clusters cannot report ${endpoint}: ResourceSet "${name}", ${obstacle}.`,
        ),
  )
}

/** The manifest of a template, with its mark and with its endpoint in its events, as the options ask for. */
export function marked(template: Template, templates: readonly Template[], options: BundleOptions): Manifest {
  const [endpoint] = template.endpoints
  if (endpoint === undefined || template.endpoints.length > 1) return template.yaml
  const told = options.events
    ? annotated(template.yaml, { 'event.toolkit.fluxcd.io/endpoint': quoted(endpoint) })
    : template.yaml
  const readers = templates.filter(({ endpoints }) => endpoints.includes(endpoint))
  if (options.ack === 'off' || readers.some(({ obstacle }) => obstacle !== undefined)) return told
  const part = readers.length === 1 ? '' : `:${readers.indexOf(template) + 1}/${readers.length}`
  return withResource(told, answerMark(template.name, `${endpoint}=<< ${DIGEST} >>${part}`))
}

/** What the Flux Operator takes for ready where it is not told. */
const IS_READY = `status.conditions.filter(c, c.type == 'Ready').all(c, c.status == 'True' && c.observedGeneration == metadata.generation)`

/**
 * The mark of an answer. Its name has the digest, so it exists only once its ResourceSet has begun to apply that answer,
 * and it waits until that ResourceSet is ready, and says that it made it: where answers change within seconds, the
 * operator may forget the mark of an earlier one, for good, which would then speak when a later answer is ready. A service
 * that sends no digests gets no marks.
 */
function answerMark(resourceSet: string, text: string): JsonObject {
  const name = `ack-${nameInMark(resourceSet)}-<< ${DIGEST} >>`
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSet',
    metadata: {
      name,
      namespace: NAMESPACE,
      annotations: {
        'fluxcd.controlplane.io/reconcile': `<< ternary "enabled" "disabled" (hasKey inputs "answer_digest") >>`,
      },
    },
    spec: {
      dependsOn: [
        {
          apiVersion: FLUX_API,
          kind: 'ResourceSet',
          name: resourceSet,
          namespace: NAMESPACE,
          ready: true,
          readyExpr: `${IS_READY} && status.inventory.entries.exists(e, e.id.contains('_${name}_'))`,
        },
      ],
      resources: [
        {
          apiVersion: FLUX_API,
          kind: 'ResourceSetInputProvider',
          metadata: { name, namespace: NAMESPACE, labels: { [ACK_LABEL]: 'true' } },
          spec: { type: 'Static', defaultValues: { ack: text } },
        },
      ],
    },
  }
}

/** Names of marks are label values, at most 63 characters, and Flux takes a dot and a hyphen for the same. */
function nameInMark(resourceSet: string): string {
  return /^[a-z0-9-]{1,42}$/.test(resourceSet)
    ? resourceSet
    : createHash('sha256').update(resourceSet).digest('hex').slice(0, 16)
}

/** A copy of a ResourceSet with one more resource. Scalars stay as they are written. */
function withResource(original: Manifest, resource: JsonObject): Manifest {
  const copy = original.clone()
  const place = ['spec', 'resources']
  if (!isSeq(copy.getIn(place, true))) copy.setIn(place, copy.createNode([]))
  const node = parseDocument(toText(manifest(resource)), { schema: 'failsafe' }).contents
  if (node)
    node.commentBefore = ' A mark, made by the bundle: it says which answer is applied, once all of it is.'
  copy.addIn(place, node)
  return copy
}
