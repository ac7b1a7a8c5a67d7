// The strategies of the service: there are few, and all are offered.
import { useQuery } from '@tanstack/react-query'
import type { JsonObject } from '../../src/base/json.ts'
import { STRATEGIES } from '../../src/domain/rollouts/strategy.ts'
import { queries } from './queries.ts'

const SHOWN = 500

/** Those that are stored; the built-in one is there without a document. */
export function useStrategies(): readonly JsonObject[] {
  return useQuery(queries.documents(STRATEGIES, { offset: 0, limit: SHOWN })).data?.body ?? []
}
