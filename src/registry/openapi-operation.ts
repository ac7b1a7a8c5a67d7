// Building blocks of an OpenAPI description: operations, parameters, answers.
import type { RegisteredType } from './build-types.ts'
import type { SchemaObject } from './resource-file.ts'

export type Node = Record<string, unknown>

export function schemaName({ singular }: RegisteredType): string {
  return singular.replaceAll(' ', '_')
}

export function ref(name: string): Node {
  return { $ref: `#/components/schemas/${name}` }
}

export function json(schema: Node, type = 'application/json'): Node {
  return { [type]: { schema } }
}

export function ok(description: string, schema: Node): Node {
  return { description, content: json(schema) }
}

export interface Operation {
  readonly tag: string
  readonly id: string
  readonly summary: string
  readonly parameters?: readonly Node[]
  readonly body?: Node
  readonly answers: Record<string, Node>
  readonly open?: boolean
  readonly bodyIsOptional?: boolean
}

export function operation(operation: Operation): Node {
  const { tag, id, summary, parameters, body, answers, open, bodyIsOptional } = operation
  return {
    tags: [tag],
    operationId: id,
    summary,
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: !bodyIsOptional, content: body } }),
    ...(open && { security: [] }),
    responses: { ...answers, ...(open ? {} : { default: { $ref: '#/components/responses/problem' } }) },
  }
}

export function inPath(name: string, description: string): Node {
  return { name, in: 'path', required: true, description, schema: { type: 'string' } }
}

export function inQuery(name: string, description: string, schema: SchemaObject = { type: 'string' }): Node {
  return { name, in: 'query', description, schema }
}

export function inHeader(name: string, description: string): Node {
  return { name, in: 'header', description, schema: { type: 'string' } }
}

export const LIMIT = inQuery('limit', 'How many to answer at most.', { type: 'integer', minimum: 0 })
export const OFFSET = inQuery('offset', 'How many to skip.', { type: 'integer', minimum: 0 })
export const AT = inQuery('at', 'As it was at this revision, or at this time (RFC 3339).')
export const SELECTOR = inQuery(
  'selector',
  'Label selector over labels, id, cluster_name, cluster_dns, environment and uses.<type>.',
)
/** The page of a list of revisions. */
export const REVISION_PAGE = [
  inQuery('limit', 'How many to answer at most.', { type: 'integer', maximum: 1000 }),
  inQuery('before', 'Only revisions before this one.', { type: 'integer', minimum: 0 }),
]
export const IMPACT_LIMIT = inQuery('impact_limit', 'How many details of the impact to answer.', {
  type: 'integer',
  minimum: 0,
  maximum: 10_000,
  default: 100,
})
/** What every write takes. */
export const WRITE = [
  inHeader('X-Change-Message', 'Why the change is made; kept with its revision.'),
  inHeader('Idempotency-Key', 'A repetition with the same key within 24 hours gets the first answer again.'),
  inQuery('dry_run', 'Answers a preview, and stores nothing.', { type: 'boolean' }),
  inQuery('plan', 'The digest that a preview answered: do exactly that or nothing.'),
  inQuery('confirm', 'Lets what removes a lot pass the brake.', { type: 'string', enum: ['removals'] }),
  IMPACT_LIMIT,
]
export const IF_MATCH = inHeader('If-Match', 'Only when the document still has this ETag.')
