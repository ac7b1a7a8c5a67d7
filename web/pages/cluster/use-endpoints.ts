// The endpoints that clusters poll, in the order of the types.
import { useQuery } from '@tanstack/react-query'
import { queries } from '../../api/queries.ts'

export function useEndpoints(): readonly string[] {
  const settings = useQuery(queries.settings())
  return settings.data?.types.flatMap(({ delivery }) => delivery?.endpoint ?? []) ?? []
}
