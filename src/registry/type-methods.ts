// The methods and security of a resource file, and which of them the service can enforce.
import { WRITE_METHODS, type WriteMethod } from '../domain/types/resource-type.ts'
import type { MethodLists, ResourceFile } from './resource-file.ts'

/** The methods that there are routes for. */
const ROUTES = { resource: ['get', 'post'], instance: ['get', 'put', 'patch', 'delete'] } as const
const LEVELS = ['resource', 'instance'] as const
type Level = (typeof LEVELS)[number]

/** Returns the write methods of a type: all of them, unless the file names fewer. */
export function methodsOf({ methods = {} }: ResourceFile): ReadonlySet<WriteMethod> {
  const named = new Set<string>(LEVELS.flatMap((level) => listOf(methods, level)))
  return new Set(WRITE_METHODS.filter((method) => named.has(method)))
}

function listOf(methods: MethodLists, level: Level): readonly string[] {
  return methods[level] ?? ROUTES[level]
}

export function checkMethods({ methods = {} }: ResourceFile): string[] {
  const problems = LEVELS.flatMap((level) => {
    const given = listOf(methods, level)
    // HEAD is allowed wherever GET is.
    const known: readonly string[] = [...ROUTES[level], 'head']
    return [
      ...given
        .filter((method) => !known.includes(method))
        .map((method) => `methods.${level} names "${method}", for which there is no route: ${hint(level)}`),
      ...(given.includes('get')
        ? []
        : [`methods.${level} must have get: what was written can always be read, in history at the least`]),
    ]
  })
  const attributes = methods.instance_attrs ?? []
  return attributes.length === 0
    ? problems
    : [...problems, 'methods.instance_attrs must be empty: single attributes have no routes, use patch']
}

function hint(level: Level): string {
  return `known are ${ROUTES[level].join(', ')}${level === 'resource' ? '; many documents at once are written by POST /batch' : ''}`
}

const ENFORCED = 'every route asks for a token, and roles and scopes say who may do what (docs/access.md)'

/** Accepts `security` only where it says what is enforced anyway: the generators of Firestone read it. */
export function checkSecurity({ security, methods = {} }: ResourceFile): string[] {
  if (!security) return []
  const unfit = Object.entries(security.scheme ?? {})
    .filter(([, { type, scheme }]) => type !== 'http' || !['bearer', 'basic'].includes(String(scheme)))
    .map(
      ([name]) => `security.scheme.${name} cannot be enforced for one type: ${ENFORCED}; leave security out`,
    )
  const open = LEVELS.flatMap((level) => {
    const left = listOf(methods, level).filter(
      (method) => method !== 'head' && !security[level]?.includes(method),
    )
    return left.length === 0
      ? []
      : [
          `security.${level} leaves ${left.join(', ')} open, which cannot be: ${ENFORCED}; name all or leave security out`,
        ]
  })
  return [...unfit, ...open]
}
