// The paths of the description, from the routes there are.
import { MIN_REVISION, type Parameter, WRITE_PARAMETERS } from '../request/parameters.ts'
import type { Route, RouteDescription } from '../route.ts'
import type { Node } from './openapi-operation.ts'

type Described = Pick<Route, 'method' | 'path' | 'access' | 'isReport'> & RouteDescription

/** Routes as they are described: one route may be described as several. */
export function describedRoutes(routes: readonly Route[]): Described[] {
  return routes.flatMap((route): Described[] => {
    const { method, access, describedAs } = route
    return describedAs?.map((described) => ({ ...described, method, access })) ?? [route]
  })
}

export function buildPaths(routes: readonly Described[]): Node {
  const paths = Map.groupBy(routes, ({ path }) => path)
  return Object.fromEntries([...paths].map(([path, operations]) => [path, pathItem(operations)]))
}

/** Path parameters that several operations share are listed once, on the path. */
function pathItem(routes: readonly Described[]): Node {
  const [first, ...others] = routes
  const ofPath = others.length > 0 ? (first?.parameters ?? []).filter(isInPath) : []
  const operations = routes.map((route) => {
    const own = parametersOf(route).filter((parameter) => ofPath.length === 0 || !isInPath(parameter))
    return [route.method.toLowerCase(), operation(route, own)] as const
  })
  return {
    ...(ofPath.length > 0 && { parameters: ofPath.map(toNode) }),
    ...Object.fromEntries(operations),
  }
}

function isInPath(parameter: Parameter): boolean {
  return parameter.in === 'path'
}

/** Adds the parameters that every read, or every write, takes; reports take neither. */
function parametersOf({ method, access, parameters = [], isReport }: Described): readonly Parameter[] {
  if (isReport) return parameters
  if (method !== 'GET') return [...parameters, ...WRITE_PARAMETERS]
  return access === 'open' ? parameters : [...parameters, MIN_REVISION]
}

/** A parameter as OpenAPI, without our own check function. */
function toNode({ check: _check, ...parameter }: Parameter): Node {
  return parameter
}

function operation(route: Described, parameters: readonly Parameter[]): Node {
  const { tag, id, summary, description, body, answers, problems, access } = route
  const refused = problems.map((status) => [status, { $ref: `#/components/responses/problem_${status}` }])
  return {
    tags: [tag],
    operationId: id,
    summary,
    description,
    ...(parameters.length > 0 && { parameters: parameters.map(toNode) }),
    ...(body && { requestBody: { required: !body.isOptional, content: body.content } }),
    ...(access === 'open' && { security: [] }),
    responses: { ...answers, ...Object.fromEntries(refused) },
  }
}
