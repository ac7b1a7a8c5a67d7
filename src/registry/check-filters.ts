// Whether the filters of a resource file can be what its list is filtered by.
import type { PlacedSchema } from './check-schema.ts'
import type { QueryParam, ResourceFile } from './resource-file.ts'

/** Everything that is wrong with `query_params`, by its place. */
export function checkFilters({ schema: { query_params: filters = [] } }: ResourceFile): string[] {
  return filters.flatMap(checkFilter)
}

function checkFilter({ name, methods, schema }: QueryParam): string[] {
  const place = `query_params.${name}`
  const usual = schema?.default
  return [
    ...(methods?.includes('get') === false
      ? [`${place}.methods must have get: only lists take filters`]
      : []),
    ...(usual === undefined
      ? []
      : [`${place}.schema.default is refused: a list is not filtered for whoever does not ask for it`]),
  ]
}

/** The schemas of filters, each where it stands. */
export function filterSchemas({ schema: { query_params: filters = [] } }: ResourceFile): PlacedSchema[] {
  return filters.map(({ name, schema: { default: _usual, ...schema } = {} }) => [
    `query_params.${name}.schema`,
    schema,
  ])
}
