// What the rules know of types: of resources, which the registry makes from files, and of the service's own.
import { isObject, type Json, type JsonObject, own } from '../../base/json.ts'
import type { Detail, ReasonOf } from '../../base/problem.ts'

export type Document = JsonObject & { readonly id: string }

/** A reference of a cluster to an assigned document: its id, its own fields, its overrides. */
export type Reference = JsonObject & { readonly id: string }

/** Which document, whether there is one or not. */
export interface DocumentName {
  readonly type: string
  readonly id: string
}

/** The value of one of a document's fields. */
export type ReadField = (field: string) => Json | undefined

/** A document that a cluster should be given with another one. */
export interface Need extends DocumentName {
  /**
   * Whether a cluster can have it without an assignment. A warning then only follows when an assigned one is removed.
   */
  readonly mayBeMissing: boolean
}

/** What may be done to documents of a type: made, replaced (or made under a given id), changed in part, deleted. */
export const WRITE_METHODS = ['post', 'put', 'patch', 'delete'] as const
export type WriteMethod = (typeof WRITE_METHODS)[number]

/** What a document means to the service itself, beyond its schema: its rules are those of this. */
export const DOCUMENT_RULES = ['strategy', 'freeze'] as const
export type DocumentRules = (typeof DOCUMENT_RULES)[number]

export interface ResourceType {
  /** Plural and snake_case, as in routes and in the store: `platform_components`. */
  readonly name: string
  /** For sentences: `platform component`. */
  readonly singular: string
  /** Reading is always possible; so is assigning, which changes clusters. */
  readonly methods: ReadonlySet<WriteMethod>
  /** The maximum size of one document's JSON, in characters. */
  readonly maxSize: number
  /** Fields in the schema's order, defaults filled in, nulls of optional fields left out. */
  normalise(document: JsonObject): JsonObject
  /** Everything wrong with a normalised document, on its own. */
  check(document: JsonObject): Detail[]
  /**
   * Normalises what was sent, and returns everything wrong with it. What it has in common with the document that it
   * replaces, object by object, is not looked at again.
   */
  conform(
    value: JsonObject,
    current?: Document,
  ): { readonly document: JsonObject; readonly details: readonly Detail[] }
  /** Whether its documents decide about the whole fleet: no scope covers them, and no rollback touches them unasked. */
  readonly isFleetWide: boolean
  /** The rules of the service that its documents obey too. */
  readonly rules?: DocumentRules
  /** Ids that no new document may have, each with the reason. */
  readonly reserved: ReadonlyMap<string, string>
  /** Fields that name documents of a type (one id, or a list of ids). */
  readonly references: readonly { readonly field: string; readonly type: string }[]
  /** How documents of this type reach clusters; absent on the cluster type itself. */
  readonly delivery?: Delivery
}

export interface Delivery {
  /** Last segment of the poll URL: `platform-components`. */
  readonly endpoint: string
  /** The property of a cluster that lists its references. */
  readonly assignedBy: string
  /** Fields of a definition that a reference may set for its cluster. */
  readonly overrides: readonly string[]
  /** Defaults of the fields that a reference has beside its id and overrides. */
  readonly referenceDefaults: JsonObject
  /** The field of a reference that disables its input where it is false, if there is one. */
  readonly enabledBy: string | undefined
  /** Whether a cluster's patches for the document travel with its input. */
  readonly patches: boolean
  /** Whether clusters report on each input by itself: its health is known then. */
  readonly reportsHealth: boolean
  /** Fields of an input that name others of its own type: what it waits for. */
  readonly waitsFor: readonly string[]
  /** Which of two classes an input is of, by the values of its fields: it can only wait for inputs of its own class. */
  deliveryClass(read: ReadField): boolean
  /** Ids of what every cluster has, assigned or not. */
  readonly onEveryCluster: ReadonlySet<string>
  /** What else a cluster should be given with a document, by the values of its fields. */
  readonly needs: {
    readonly types: readonly string[]
    /** The fields that decide on what may not be missing. */
    readonly fields: readonly string[]
    of(read: ReadField): readonly Need[]
  }
  /** Everything wrong with the names of a cluster's patches, by the values of the document's fields. */
  readonly patchNames:
    | {
        /** The fields that it depends on. */
        readonly fields: readonly string[]
        /** What names have to be; equal for documents that take the same ones. */
        formatOf(read: ReadField): string | undefined
        check(read: ReadField, values: JsonObject): Detail[]
      }
    | undefined
  /** Which field is the version of a document, by the values of its fields; undefined where no field is. */
  readonly versionField: ((read: ReadField) => string | undefined) | undefined
  /** The fields of an input after its `id`, in order. */
  readonly input: readonly InputField[]
  /** The placeholders of an input, in order. */
  readonly placeholders: readonly Placeholder[]
  /** Defaults of definition fields, for documents stored before a field existed. */
  readonly definitionDefaults: JsonObject
  normaliseReference(reference: JsonObject): JsonObject
  checkReference(reference: JsonObject): Detail[]
}

/** A place in an input for what differs from cluster to cluster. */
type Placeholder = 'patches' | 'cluster'

export type InputField =
  | { readonly kind: 'value'; readonly name: string; readonly source: string }
  | { readonly kind: 'group'; readonly name: string; readonly sources: readonly string[] }
  | { readonly kind: Placeholder; readonly name: string }

export interface DeliveredType extends ResourceType {
  readonly delivery: Delivery
}

/** The one type whose documents are the clusters that poll. */
export interface ClusterType {
  readonly type: ResourceType
  readonly dns: string
  readonly patches: string
  /** Everything wrong with the values of one component. */
  checkValues(values: JsonObject): Detail[]
  readonly deletionProtection: string
  /** Labels to select clusters by. */
  readonly labels: string | undefined
  /** The tier that a cluster belongs to. */
  readonly environment: string | undefined
  /** What every input says of its cluster: the name in the input, and the property of the cluster. */
  readonly input: readonly (readonly [string, string])[]
  /** Properties in the list of clusters, after the id. */
  readonly list: readonly string[]
}

/**
 * What is special about documents of a type that the service itself works with; what is left out is as for any resource.
 * `system-types.ts` registers them. Some have no resource file, so that no route or command but their own names them.
 */
export interface SystemType {
  readonly name: string
  readonly singular: string
  /** Whether revisions can be searched for changes of it. */
  readonly isSearchable: boolean
  /** Whether copies of a part of the fleet hold its documents. */
  readonly inPartialCopies: boolean
  /** The only cluster that a document is for: it is removed with that cluster, and copied only with it. */
  clusterOf?(document: Document): string | undefined
  /** A document that speaks of many clusters, as a copy of a part holds it; `clusters` is the name of their type. */
  partOf?(document: Document, clusters: string, isInPart: (cluster: string) => boolean): Document
  /** A document as it is shown: without secrets, and without lists that grow with the fleet. */
  redact?(document: Document): JsonObject
  /** What a plan is bound to: without values that every decision makes anew, such as secrets and times. */
  planned?(document: Document): object
  /**
   * Set for documents that never return to an earlier version: a rollback leaves them alone, and a revert asks this.
   * Where it is `ignored`, a revert leaves them alone too, without a warning.
   */
  readonly irreversible?: Irreversible | 'ignored'
  /** For documents that list others: the names that one of them lists. */
  holds?(document: Document): Iterable<DocumentName>
  /** Other keys than its id that a document is found by. */
  indexKeys?(document: Document): readonly string[]
  /** Operations of commands that write it without naming a type. */
  readonly operations?: readonly string[]
  /** Help of the gauge that counts its documents; there is none without. */
  readonly gaugeHelp?: string
}

/** What a revert does about changes that cannot be taken back. */
export interface Irreversible {
  /** Whether the rest of the revision can be reverted without this change; otherwise the revert is refused. */
  mayStay(before: Document | undefined, after: Document | undefined): boolean
  /** Of the problem that a revert is refused with. */
  readonly reason: ReasonOf<'conflict'>
  /** Why a revision cannot be reverted. */
  refusal(revision: number): string
  /** The warning that documents stay as they are while the rest of a revision is reverted. */
  warning(before: readonly Document[]): string
}

export interface SystemTypes {
  readonly all: readonly SystemType[]
  get(name: string): SystemType | undefined
}

export interface Types {
  readonly all: readonly ResourceType[]
  readonly cluster: ClusterType
  readonly delivered: readonly DeliveredType[]
  get(name: string): ResourceType | undefined
  byEndpoint(endpoint: string): DeliveredType | undefined
  readonly system: SystemTypes
  /** The type whose inputs carry patches, if any. */
  readonly patchable: DeliveredType | undefined
}

/** The references that a cluster holds for a type; an older document may lack the list. */
export function referencesOf(cluster: Document, delivery: Delivery): readonly Reference[] {
  return (cluster[delivery.assignedBy] ?? []) as readonly Reference[]
}

export function findReference(cluster: Document, delivery: Delivery, id: string): Reference | undefined {
  return referencesOf(cluster, delivery).find((reference) => reference.id === id)
}

/** Whether a reference enables its input. */
export function isEnabled({ enabledBy }: Delivery, reference: Reference): boolean {
  return enabledBy === undefined || reference[enabledBy] !== false
}

/** The fields of a definition that a reference has a value of its own for. */
export function overriddenFields({ overrides }: Delivery, reference: Reference): string[] {
  return overrides.filter((field) => (reference[field] ?? null) !== null)
}

/** A cluster's values for one of its components. */
export function patchesOf(cluster: ClusterType, document: Document, component: string): JsonObject {
  const all = document[cluster.patches]
  return ((isObject(all) ? own(all, component) : undefined) ?? {}) as JsonObject
}

/** The ids that a reference field of a definition names. */
export function idsIn(value: Json | undefined): readonly string[] {
  if (typeof value === 'string') return [value]
  return Array.isArray(value) ? value : []
}

/** The DNS name of a cluster, fit for comparing. */
export function dnsOf(cluster: ClusterType, document: Document): string {
  return canonicalDns(String(document[cluster.dns]))
}

/** DNS names compare without the root's dot and without case, which only A to Z have: U+212A is no k. */
export function canonicalDns(name: string): string {
  const lower = /[A-Z]/.test(name) ? name.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()) : name
  return lower.endsWith('.') ? lower.slice(0, -1) : lower
}

/** Characters of the values that every input repeats of its cluster. */
export function identityLength(cluster: ClusterType, document: Document): number {
  let length = 0
  for (const [, property] of cluster.input) length += String(document[property]).length
  return length
}

/** Whether a reference says nothing beyond its id and the defaults. */
export function isPlain(reference: Reference, defaults: Readonly<Record<string, unknown>>): boolean {
  for (const key in reference) if (key !== 'id' && reference[key] !== defaults[key]) return false
  for (const key in defaults) if (reference[key] === undefined) return false
  return true
}
