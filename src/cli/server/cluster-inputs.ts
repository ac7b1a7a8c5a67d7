// Reading the inputs of a cluster: what it receives when it polls, and where each field comes from.
import type { Json, JsonObject } from '../../base/json.ts'
import type { Session } from '../session.ts'
import type { Noun } from './nouns.ts'
import { pathOf } from './read-documents.ts'

export interface ClusterInputs {
  readonly inputs: readonly (JsonObject & { readonly id: string })[]
}

/** The inputs with `explain`. */
export interface ExplainedInputs {
  readonly revision: number
  readonly inputs: readonly {
    readonly id: string
    readonly fields: readonly {
      readonly path: string
      readonly value: Json
      readonly source: string
      readonly revision: number | null
      readonly time: string | null
      readonly actor: string | null
      readonly message: string | null
      readonly left_out?: readonly { readonly id: string; readonly why: string }[]
    }[]
  }[]
}

/** The inputs of a cluster at each endpoint. */
export async function readInputs(
  { api }: Session,
  noun: Noun,
  id: string,
  endpoints: readonly string[],
  query: Readonly<Record<string, string | boolean | undefined>>,
): Promise<[endpoint: string, inputs: ClusterInputs][]> {
  return Promise.all(
    endpoints.map(async (endpoint): Promise<[string, ClusterInputs]> => {
      const { body } = await api.get(pathOf(noun, id, 'inputs', endpoint), { query })
      return [endpoint, body]
    }),
  )
}
