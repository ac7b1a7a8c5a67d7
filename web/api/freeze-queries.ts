// Freezes, each with whether it is on.
import { queryOptions } from '@tanstack/react-query'
import type { FreezeStatus } from '../../src/api/freeze-schema.ts'
import type { Freeze } from '../../src/domain/rollouts/freeze.ts'
import { pathOf, read } from './client.ts'
import { STATUS_REFRESH_MS } from './queries.ts'

/** The type of freezes; so many of them are listed. */
export const FREEZES = 'freezes'
const FREEZES_SHOWN = 50

export interface ShownFreeze {
  readonly freeze: Freeze
  readonly status: FreezeStatus
}

/** There are few: each is asked for its status. */
export const freezeQuery = () =>
  queryOptions({
    queryKey: ['documents', FREEZES, 'status'],
    queryFn: async ({ signal }): Promise<readonly ShownFreeze[]> => {
      const freezes = await read<Freeze[]>(`/${FREEZES}`, { limit: FREEZES_SHOWN }, signal)
      return Promise.all(
        freezes.map(async (freeze) => ({
          freeze,
          status: await read<FreezeStatus>(pathOf(FREEZES, freeze.id, 'status'), {}, signal),
        })),
      )
    },
    refetchInterval: STATUS_REFRESH_MS,
  })
