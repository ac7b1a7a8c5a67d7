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
}

export function operation({ tag, id, summary, parameters, body, answers, open }: Operation): Node {
  return {
    tags: [tag],
    operationId: id,
    summary,
    ...(parameters && { parameters }),
    ...(body && { requestBody: { required: true, content: body } }),
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
/** The page of a list of revisions. */
export const REVISION_PAGE = [
  inQuery('limit', 'How many to answer at most.', { type: 'integer', maximum: 100 }),
  inQuery('before', 'Only revisions before this one.', { type: 'integer', minimum: 0 }),
]
export const MESSAGE = inHeader('X-Change-Message', 'Why the change is made; kept with its revision.')
export const IF_MATCH = inHeader('If-Match', 'Only when the document still has this ETag.')
