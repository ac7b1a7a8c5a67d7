// Bodies of the routes of tokens, in OpenAPI's words: what each role takes.
import { ISSUE_SCHEMA, NEW_TOKEN_SCHEMA, ROTATION_SCHEMA } from '../../api/token-schema.ts'
import type { SchemaObject } from '../../base/json-schema.ts'
import { ROLE_MEANINGS, ROLES, SCOPES } from '../../domain/access/grant.ts'
import { DEFAULT_GRACE, TOKEN_NAME } from '../../domain/access/token.ts'
import type { RegisteredType, RegisteredTypes } from '../../registry/build-types.ts'
import { exampleId } from './openapi-example.ts'
import type { Examples, Node } from './openapi-operation.ts'
import { byValue, every, lacks, needs } from './openapi-rules.ts'
import { requested } from './openapi-schema.ts'

export const EXAMPLE_NAME = 'ci-team-a'
const NAME = { pattern: TOKEN_NAME.source }
const DURATION = { pattern: '^(?:[0-9]{1,6}[dhms])+$' }

export const rotationSchema = (): Node => withDefaultGrace(ROTATION_SCHEMA)
export const issueSchema = (): Node => withDefaultGrace(ISSUE_SCHEMA)

function withDefaultGrace({ properties = {}, ...rest }: SchemaObject): Node {
  const { default: usual, ...grace } = { ...properties.grace, ...DURATION }
  return {
    ...rest,
    properties: {
      ...properties,
      grace: { ...grace, description: `${grace.description} Default: ${usual}.` },
    },
  }
}

/** With what each role takes. */
export function newTokenSchema(types: RegisteredTypes): Node {
  const { properties = {}, ...rest } = requested(NEW_TOKEN_SCHEMA)
  const { name, types: chosen } = properties
  const names = types.all.map((type) => type.name)
  const rules = ROLES.map((role) => {
    const scopes = ['cluster', 'selector', 'types'].filter(
      (field) => !SCOPES[role].some((one) => one === field),
    )
    return { values: [role], rule: every(lacks(...scopes), role === 'cluster' ? needs('cluster') : {}) }
  })
  return {
    ...rest,
    properties: {
      ...properties,
      name: { ...name, ...NAME },
      types: { ...chosen, items: { type: 'string', enum: names } },
    },
    ...byValue('role', rules),
  }
}

export function issueExample(types: RegisteredTypes) {
  return { clusters: [exampleId(types.get(types.cluster.type.name) as RegisteredType)], grace: DEFAULT_GRACE }
}

/** One for each role. */
export function tokenExamples(types: RegisteredTypes): Examples {
  const cluster = types.get(types.cluster.type.name) as RegisteredType
  const values = { cluster: exampleId(cluster), selector: 'environment in (dev,qa)', types: [cluster.name] }
  const examples = Object.fromEntries(
    ROLES.map((role) => {
      const scope = Object.fromEntries(SCOPES[role].map((field) => [field, values[field]]))
      return [
        role,
        { summary: `${role} ${ROLE_MEANINGS[role]}`, value: { name: EXAMPLE_NAME, role, ...scope } },
      ]
    }),
  )
  return { examples }
}
