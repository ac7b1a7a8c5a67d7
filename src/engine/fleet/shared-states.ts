// States of clusters, one object for all clusters that have the same.
import { getOrSet } from '../../base/get-or-set.ts'
import type { EndpointStates } from '../../domain/status/derive-status.ts'
import type { StatusRow } from '../../domain/status/status-words.ts'

export class SharedStates {
  readonly #rows = new Map<string, StatusRow>()
  readonly #endpoints = new Map<string, readonly EndpointStates[]>()

  row(row: StatusRow): StatusRow {
    return getOrSet(this.#rows, `${row.contact} ${row.delivery} ${row.health}`, () => row)
  }

  endpoints(states: readonly EndpointStates[]): readonly EndpointStates[] {
    let key = ''
    for (const { delivery, health } of states) key += `${delivery} ${health},`
    return getOrSet(this.#endpoints, key, () => states)
  }
}
