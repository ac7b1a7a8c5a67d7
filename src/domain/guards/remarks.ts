// Warnings about clusters: a warning that is true of many of them is given once.

import { getOrSet } from '../../base/get-or-set.ts'
import { named } from '../../base/sentences.ts'

const MAX_REMARKS = 20

export class Remarks {
  readonly #clusters = new Map<string, string[]>()

  add(cluster: string, remark: string): void {
    getOrSet(this.#clusters, remark, () => []).push(cluster)
  }

  /** Returns the first warnings, each with its clusters, and how many others there are. */
  lines(): string[] {
    const shown = [...this.#clusters.entries().take(MAX_REMARKS)]
    const more = this.#clusters.size - shown.length
    return [
      ...shown.map(([remark, clusters]) => `${clustersNamed(clusters)}: ${remark}`),
      ...(more > 0 ? [`and ${more} more`] : []),
    ]
  }
}

export function clustersNamed(ids: readonly string[]): string {
  return ids.length === 1 ? `cluster "${ids[0]}"` : `${ids.length} clusters (${named(ids)})`
}
