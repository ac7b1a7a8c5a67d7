// Documents that speak of many clusters, in a partial log: each is sent as far as it speaks of those in the part.
import type { Document, DocumentName, SystemTypes } from '../domain/types/resource-type.ts'
import type { SentChange } from './transfer-items.ts'

interface Shared extends DocumentName {
  /** As the source has it. */
  readonly json: string
}

export class SharedDocuments {
  readonly #system: SystemTypes
  readonly #clusters: string
  readonly #isInPart: (cluster: string) => boolean
  readonly #all = new Map<string, Shared>()
  /** As the partial log holds them as of the last revision that ended. */
  readonly #sent = new Map<string, string>()
  readonly #touched = new Map<string, DocumentName>()

  constructor(system: SystemTypes, clusters: string, isInPart: (cluster: string) => boolean) {
    this.#system = system
    this.#clusters = clusters
    this.#isInPart = isInPart
  }

  set({ type, id }: DocumentName, json: string | null): void {
    const key = `${type}/${id}`
    if (json === null) this.#all.delete(key)
    else this.#all.set(key, { type, id, json })
    this.#touched.set(key, { type, id })
  }

  /** As the part holds a document. */
  partOf({ type, json }: Pick<Shared, 'type' | 'json'>): string {
    const partOf = this.#system.get(type)?.partOf
    if (!partOf) return json
    return JSON.stringify(partOf(JSON.parse(json) as Document, this.#clusters, this.#isInPart))
  }

  /** What the part is to learn at the end of a revision; `areMoved` where clusters have come into the part, or left it. */
  *end(areMoved: boolean): Generator<SentChange> {
    const touched = areMoved ? new Map<string, DocumentName>([...this.#touched, ...this.#all]) : this.#touched
    for (const key of [...touched.keys()].sort()) {
      const { type, id } = touched.get(key) as DocumentName
      const shared = this.#all.get(key)
      const json = shared ? this.partOf(shared) : null
      if (json === (this.#sent.get(key) ?? null)) continue
      yield { type, id, after: json, after_deleted: false }
    }
  }

  /** What has to be sent has been. */
  settle(areMoved: boolean): void {
    for (const { type, id, after } of this.end(areMoved)) {
      if (after === null) this.#sent.delete(`${type}/${id}`)
      else this.#sent.set(`${type}/${id}`, after)
    }
    this.#touched.clear()
  }
}
