// JSON Schema validation with errors that say what is wrong and what would be right.
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import { DNS_LABEL } from '../base/dns-label.ts'
import { isObject, type Json, type JsonObject, pointer } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import { type Detail, MAX_FOUND } from '../base/problem.ts'

const HOST_LABEL = '[a-zA-Z0-9](?:[-a-zA-Z0-9]{0,61}[a-zA-Z0-9])?'
const QUALIFIED = '[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?'
/** What Flux accepts between two dots of a Helm path; a dot after a backslash is a part of the key. */
const VALUE_KEY = '(?:[A-Za-z0-9_\\/\\-]|\\\\\\.)+(?:\\[[0-9]{1,4}\\])*'

interface Format {
  /** A pattern of ECMA-262 for the whole text, as the description of the API shows it. */
  readonly pattern: string
  readonly maxLength?: number
  /** A check that no pattern expresses well. */
  readonly fits?: (text: string) => boolean
  readonly hint: string
}

/** Characters that a text on one line must not have: control characters, and those that end a line. */
const ON_ONE_LINE = '\\u0000-\\u001f\\u007f-\\u009f\\u2028\\u2029\\ufffe\\uffff'

/** Which code points are assigned depends on the version of Unicode: no pattern that other tools read can say it. */
function isAssigned(text: string): boolean {
  return !/[\p{Cn}\p{Cs}]/u.test(text)
}

/** String formats that resource files may use, each with a hint for texts that do not match. */
const FORMATS: Record<string, Format> = {
  'dns-label': {
    pattern: `^${DNS_LABEL}$`,
    hint: 'an RFC 1123 label: at most 63 of a-z, 0-9 and "-", with a letter or digit at both ends',
  },
  'dns-subdomain': {
    pattern: `^${DNS_LABEL}(?:\\.${DNS_LABEL})*$`,
    maxLength: 253,
    hint: 'an RFC 1123 subdomain: at most 253 of a-z, 0-9, "-" and ".", with a letter or digit at both ends of each part',
  },
  hostname: {
    pattern: `^${HOST_LABEL}(?:\\.${HOST_LABEL})*$`,
    maxLength: 253,
    hint: 'an RFC 1123 DNS name, such as cluster-01.k8s.example.com',
  },
  'label-key': {
    pattern: `^(?:${DNS_LABEL}(?:\\.${DNS_LABEL}){0,126}/)?${QUALIFIED}$`,
    maxLength: 317,
    fits: (text) => text.indexOf('/') <= 253,
    hint: 'a Kubernetes label key, such as team or example.com/team',
  },
  'label-value': {
    pattern: `^(?:${QUALIFIED})?$`,
    hint: 'a Kubernetes label value: at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends',
  },
  'role-name': {
    pattern: `^(?!\\.{1,2}$)[^/%${ON_ONE_LINE}]+$`,
    fits: isAssigned,
    hint: 'the name of a role on one line, without "/" and "%"',
  },
  'one-line': {
    pattern: `^[^${ON_ONE_LINE}]*$`,
    fits: isAssigned,
    hint: 'text on one line, without control characters',
  },
  'value-path': {
    pattern: `^${VALUE_KEY}(?:\\.${VALUE_KEY}){0,24}$`,
    maxLength: 250,
    hint: 'a variable or a Helm path of at most 250 characters, such as replicaCount, hosts[0].name or annotations.example\\.com/team',
  },
  variable: {
    pattern: '^[A-Za-z_][A-Za-z0-9_]*$',
    hint: 'a variable (letters, digits and "_", no digit first), as only charts take Helm paths',
  },
  uri: { pattern: '^[A-Za-z][A-Za-z0-9+.-]*:\\S+$', hint: 'a URI, such as https://example.com/path' },
  share: {
    pattern: '^(?:100|[0-9]{1,2}(?:\\.[0-9]{1,2})?)%$',
    hint: 'a share such as 5%, of at most 100%',
  },
  'date-time': {
    pattern: '^\\d{4}-\\d\\d-\\d\\d[Tt]\\d\\d:\\d\\d:\\d\\d(?:\\.\\d+)?(?:[Zz]|[+-]\\d\\d:\\d\\d)$',
    hint: 'an RFC 3339 time, such as 2026-01-31T12:00:00Z',
  },
}

const TESTS = Object.fromEntries(
  Object.entries(FORMATS).map(([name, { pattern, maxLength = Number.POSITIVE_INFINITY, fits }]) => {
    const expression = new RegExp(pattern, 'u')
    const test = (text: string): boolean =>
      text.length <= maxLength && expression.test(text) && (fits?.(text) ?? true)
    return [name, test]
  }),
)

/** The keywords of JSON Schema that say what a format means. */
export function schemaOf(format: string | undefined): SchemaObject | undefined {
  const known = FORMATS[format ?? '']
  if (!known) return undefined
  const { pattern, maxLength } = known
  return { pattern, ...(maxLength !== undefined && { maxLength }) }
}

export function knownFormats(): readonly string[] {
  return Object.keys(FORMATS)
}

export function matchesFormat(format: string, text: string): boolean {
  return TESTS[format]?.(text) ?? false
}

/** Returns the message for a text that does not match a format; undefined where it matches. */
export function formatProblem(format: string, text: unknown): string | undefined {
  if (typeof text === 'string' && matchesFormat(format, text)) return undefined
  return `must be ${FORMATS[format]?.hint}, not ${describeValue(text)}`
}

/** How many bytes of UTF-8 all texts in a value may have together, keys included. */
export const MAX_BYTES = 'x-max-bytes'

function bytesOf(value: Json): number {
  if (typeof value === 'string') return Buffer.byteLength(value)
  if (typeof value !== 'object' || value === null) return 0
  const texts = Array.isArray(value) ? value : Object.entries(value).flat()
  return texts.reduce((sum, text) => sum + bytesOf(text), 0)
}

const OPTIONS = {
  allowUnionTypes: true,
  verbose: true,
  code: { optimize: false },
  strictTypes: false,
  strictRequired: false,
  keywords: [
    'example',
    'expose',
    { keyword: MAX_BYTES, validate: (limit: number, value: Json) => bytesOf(value) <= limit },
  ],
  formats: TESTS,
}
const first = new Ajv2020(OPTIONS)
const all = new Ajv2020({ ...OPTIONS, allErrors: true })

/** Of a value with more parts than this only the first mistake is reported: each costs more than the part itself. */
const MAX_PARTS = 10_000

/**
 * Everything in a value that its schema does not allow, and nulls, which templates cannot read. The schema is one of the
 * service's own: it is compiled by the first value, as most processes never get one.
 */
export function buildChecker(schema: SchemaObject): (value: Json) => Detail[] {
  let check: ReturnType<typeof compileChecker> | undefined
  return (value) => {
    check ??= compileChecker(schema)
    return check(value)
  }
}

/** Throws where the schema cannot be used. */
function compileChecker(schema: SchemaObject): (value: Json) => Detail[] {
  const validate = first.compile(schema)
  const room = mayHoldNull(schema)
  let validateAll: typeof validate | undefined
  return (value) => {
    if (validate(value)) return room ? nulls(value, '') : []
    if (countParts(value, MAX_PARTS) >= MAX_PARTS) return detailsIn(validate.errors ?? [])
    validateAll ??= all.compile(schema)
    validateAll(value)
    return detailsIn((validateAll.errors ?? []).slice(0, MAX_FOUND + 1))
  }
}

/** Stops counting at the limit. */
function countParts(value: Json, limit: number): number {
  let count = 1
  if (typeof value !== 'object' || value === null) return count
  for (const key in value) {
    count += countParts((value as JsonObject)[key] as Json, limit - count)
    if (count >= limit) break
  }
  return count
}

/** DEL, the C1 control characters and Unicode's noncharacters. NEL is a line break in YAML, and arrives as a space. */
const NOT_IN_YAML = '\\u007f-\\u009f\\ufffe\\uffff'
const UNWRITABLE = new RegExp(`[${NOT_IN_YAML}]`)
/** What any text in a document may hold, and any key: a backslash only before a dot. */
export const WRITABLE = `^[^\\u0000${NOT_IN_YAML}]*$`
export const WRITABLE_KEY = `^(?:[^\\\\\\u0000${NOT_IN_YAML}]|\\\\\\.)*$`

/**
 * The same for what reaches clusters: a character that YAML cannot carry would make Flux fail on all their inputs. A
 * schema of a resource file is known to be usable by then (`check-schema.ts`).
 */
export function buildDocumentChecker(schema: SchemaObject): (value: Json) => Detail[] {
  return refuseUnwritable(buildChecker(schema))
}

/** The same at once. Throws where the schema cannot be used. */
export function compileDocumentChecker(schema: SchemaObject): (value: Json) => Detail[] {
  return refuseUnwritable(compileChecker(schema))
}

function refuseUnwritable(check: (value: Json) => Detail[]): (value: Json) => Detail[] {
  return (value) => {
    const details = check(value)
    return details.length > 0 || !UNWRITABLE.test(JSON.stringify(value)) ? details : unwritable(value, '')
  }
}

function unwritable(value: Json, path: string): Detail[] {
  const message = 'holds a control character that YAML cannot carry: remove it'
  if (typeof value === 'string') return UNWRITABLE.test(value) ? [{ path, message }] : []
  if (Array.isArray(value)) return value.flatMap((item, i) => unwritable(item, pointer(path, i)))
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => {
    const at = pointer(path, key)
    return UNWRITABLE.test(key) ? [{ path: at, message }] : unwritable(item, at)
  })
}

/** What is wrong with every alternative of a value is one mistake. */
function detailsIn(errors: readonly ErrorObject[]): Detail[] {
  const unions = errors.filter(({ keyword }) => keyword === 'anyOf')
  const unionOf = ({ instancePath, schemaPath }: ErrorObject): ErrorObject | undefined =>
    unions.find(
      (union) => union.instancePath === instancePath && schemaPath.startsWith(`${union.schemaPath}/`),
    )
  return errors.flatMap((error) => {
    if (unionOf(error)) return []
    const branches = errors.filter((branch) => unionOf(branch) === error).flatMap(detailsOf)
    if (branches.length === 0) return detailsOf(error)
    const alternatives = branches.map(({ message }) => message.replace(/, not .*$/, ''))
    const message = `${alternatives.join(', or ')}, not ${describeValue(error.data)}`
    return [{ path: error.instancePath, message }]
  })
}

function detailsOf(error: ErrorObject): Detail[] {
  const { keyword, params, instancePath: path } = error
  switch (keyword) {
    case 'required':
      return [{ path: pointer(path, params.missingProperty), message: 'is required' }]
    case 'additionalProperties': {
      const known = Object.keys((error.parentSchema?.properties as object | undefined) ?? {}).join(', ')
      return [
        {
          path: pointer(path, params.additionalProperty),
          message: `is an unknown field: known are ${known}`,
        },
      ]
    }
    case 'type':
      return [{ path, message: `must be ${article(String(params.type))}, not ${describeValue(error.data)}` }]
    case 'enum':
      return [
        {
          path,
          message: `must be one of ${params.allowedValues.join(', ')}, not ${describeValue(error.data)}`,
        },
      ]
    case 'const':
      return [
        {
          path,
          message: `must be ${describeValue(params.allowedValue)}, not ${describeValue(error.data)}`,
        },
      ]
    case 'format': {
      const at = error.propertyName === undefined ? path : pointer(path, error.propertyName)
      return [{ path: at, message: formatProblem(params.format, error.data) ?? 'is not valid' }]
    }
    case 'pattern':
      return [{ path, message: `must match ${params.pattern}, not ${describeValue(error.data)}` }]
    case 'minLength':
      return [{ path, message: params.limit === 1 ? 'must not be empty' : String(error.message) }]
    case 'minItems':
      return [
        {
          path,
          message: params.limit === 1 ? 'must not be empty' : `must have at least ${params.limit} items`,
        },
      ]
    case 'maxItems':
      return [{ path, message: `must have at most ${params.limit} items` }]
    case MAX_BYTES: {
      const bytes = bytesOf(error.data as Json)
      const message = `has ${bytes} bytes of UTF-8, keys and values together, and may have ${error.schema}: make it shorter`
      return [{ path, message }]
    }
    case 'uniqueItems':
      return [
        { path: pointer(path, Math.max(params.i, params.j)), message: 'is a duplicate: name each once' },
      ]
    case 'propertyNames':
    case 'if':
      return [] // a more specific error is reported as well
    default:
      return [{ path, message: error.message ?? 'is not valid' }]
  }
}

/** Whether a value can pass the schema with a null in it; most schemas leave no room for one. */
function mayHoldNull(schema: SchemaObject): boolean {
  const { type, properties, items, additionalProperties } = schema
  const types = [type ?? 'null'].flat()
  if (types.includes('null')) return true
  const inItems = types.includes('array') && (!items || mayHoldNull(items))
  const open =
    typeof additionalProperties === 'object'
      ? mayHoldNull(additionalProperties)
      : additionalProperties !== false
  const inMembers = types.includes('object') && (open || Object.values(properties ?? {}).some(mayHoldNull))
  return inItems || inMembers
}

function nulls(value: Json, path: string): Detail[] {
  if (value === null) return [{ path, message: 'must not be null: leave it out' }]
  if (Array.isArray(value)) return value.flatMap((item, i) => nulls(item, pointer(path, i)))
  if (isObject(value)) return Object.entries(value).flatMap(([key, item]) => nulls(item, pointer(path, key)))
  return []
}

function article(types: string): string {
  return types
    .split(',')
    .map((type) => (/^[aeiou]/.test(type) ? `an ${type}` : `a ${type}`))
    .join(' or ')
}

function describeValue(value: unknown): string {
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  const text = JSON.stringify(value)
  return text.length <= 80 ? text : `${text.slice(0, 80)}…`
}
