// Whether the filters of a resource file can be what its list is filtered by.
import { checkSchema } from './check-schema.ts'
import type { QueryParam, ResourceFile } from './resource-file.ts'

/** Everything that is wrong with `query_params`, by its place. */
export function checkFilters({ schema: { query_params: filters = [] } }: ResourceFile): string[] {
  return filters.flatMap(checkFilter)
}

function checkFilter({ name, methods, schema }: QueryParam): string[] {
  const place = `query_params.${name}`
  const { default: usual, ...rest } = schema ?? {}
  return [
    ...(methods?.includes('get') === false
      ? [`${place}.methods must have get: only lists take filters`]
      : []),
    ...(usual === undefined
      ? []
      : [`${place}.schema.default is refused: a list is not filtered for whoever does not ask for it`]),
    ...checkSchema(`${place}.schema`, rest),
  ]
}
