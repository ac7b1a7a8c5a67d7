// What the palette finds on the service for a text: clusters, definitions, rollouts, and a revision by its number.
import { useDebouncedValue } from '@mantine/hooks'
import { useQueries, useQuery } from '@tanstack/react-query'
import { queries } from '../api/queries.ts'
import { useHasDocuments } from '../session/permissions.ts'

const TYPING_MS = 150
const FOUND = 8
/** Definitions and rollouts are few, and looked through here. */
const LOOKED_AT = 500
const ROLLOUTS = { offset: 0, limit: 100 }

export interface Found {
  readonly clusters: readonly string[]
  readonly definitions: readonly { readonly type: string; readonly noun: string; readonly id: string }[]
  readonly rollouts: readonly { readonly id: string; readonly name: string; readonly state: string }[]
  /** As it was typed: `#12` or `12`. */
  readonly revision: string | undefined
}

export function useFound(typed: string): Found {
  const [text] = useDebouncedValue(typed.trim(), TYPING_MS)
  const hasDocuments = useHasDocuments()
  const enabled = text.length > 1
  const clusters = useQuery({ ...queries.clusterNames(text, FOUND), enabled })
  const rollouts = useQuery({ ...queries.rollouts(undefined, ROLLOUTS), enabled })
  const [, revision] = /^#?(\d{1,15})$/.exec(text) ?? []
  return {
    clusters: enabled ? (clusters.data ?? []) : [],
    definitions: useFoundDefinitions(text, enabled && hasDocuments),
    rollouts: (enabled ? (rollouts.data?.body ?? []) : [])
      .map(({ id, message, state }) => ({ id, name: message ?? id, state }))
      .filter(({ id, name }) => holds(id, text) || holds(name, text))
      .slice(0, FOUND),
    revision: hasDocuments ? revision : undefined,
  }
}

function useFoundDefinitions(text: string, enabled: boolean): Found['definitions'] {
  const types = useQuery(queries.settings()).data?.types.filter(({ delivery }) => delivery) ?? []
  const page = { offset: 0, limit: LOOKED_AT }
  const lists = useQueries({
    queries: types.map(({ name }) => ({ ...queries.documents(name, page), enabled })),
  })
  if (!enabled) return []
  return types
    .flatMap(({ name, noun }, t) =>
      (lists[t]?.data?.body ?? []).map(({ id }) => ({ type: name, noun, id: String(id) })),
    )
    .filter(({ id }) => holds(id, text))
    .slice(0, FOUND)
}

function holds(text: string, part: string): boolean {
  return text.toLowerCase().includes(part.toLowerCase())
}
