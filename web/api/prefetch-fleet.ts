// Asks for the list of the fleet while the code of its page is still being loaded.
import type { QueryClient } from '@tanstack/react-query'
import { currentToken } from '../session/session.ts'
import { FLEET_PAGE, type FleetFilter, queries } from './queries.ts'

export function prefetchFleet(client: QueryClient, filter: FleetFilter): void {
  if (currentToken() === undefined) return
  void client.prefetchQuery(queries.fleet(filter, { offset: 0, limit: FLEET_PAGE }))
}
