import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { describe, test } from 'node:test'
import { parse } from 'yaml'

const ROOT = join(import.meta.dirname, '..')

/** The top level that the public Firestone generator takes; it refuses any other key there. */
const TOP_LEVEL: Record<string, (value: unknown) => boolean> = {
  kind: isText,
  apiVersion: isText,
  versionInPath: (value) => typeof value === 'boolean',
  metadata: isMap,
  asyncapi: isMap,
  default_query_params: Array.isArray,
  descriptions: isMap,
  methods: isMap,
  security: isMap,
  schema: isMap,
}
const VERBS = ['delete', 'get', 'head', 'options', 'patch', 'post', 'put']
const LEVELS = ['resource', 'instance', 'instance_attrs']
const SCHEMA_KEYS = ['type', 'key', 'query_params', 'descriptions', 'items']

type Mapping = Record<string, unknown>

function isMap(value: unknown): value is Mapping {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function yamlFilesIn(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .sort()
}

/** A resource file, as far as a reader can rely on before it is checked. */
interface ResourceFile {
  readonly [key: string]: unknown
  readonly schema: Mapping & {
    readonly key: Mapping
    readonly items: Mapping & { readonly properties: Mapping }
  }
}

function read(path: string): ResourceFile {
  return parse(readFileSync(join(ROOT, path), 'utf8'))
}

/** Verbs by level, as under `methods` and `security`. */
function verbsIn(section: unknown): unknown[] {
  return LEVELS.flatMap((level) => (isMap(section) ? ((section[level] as unknown[] | undefined) ?? []) : []))
}

/** Where in a value a key of ours stands. */
function placesOf(value: unknown, key: RegExp, at = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => placesOf(item, key, `${at}/${i}`))
  if (!isMap(value)) return []
  return Object.entries(value).flatMap(([name, item]) => [
    ...(key.test(name) ? [`${at}/${name}`] : []),
    ...placesOf(item, key, `${at}/${name}`),
  ])
}

const files = [...yamlFilesIn('resources'), ...yamlFilesIn('examples/network-policies')]

test('the built-in types and at least one example of a further type are there', () => {
  for (const name of ['cluster', 'platform_component', 'namespace', 'rolebinding']) {
    assert.ok(files.includes(`resources/${name}.yaml`), name)
  }
  assert.ok(files.some((file) => file.startsWith('examples/')))
})

for (const path of files) {
  describe(`the public Firestone generator takes ${path}`, () => {
    const file = read(path)

    test('it has what is required, and nothing unknown at the top', () => {
      for (const key of ['kind', 'apiVersion', 'schema']) assert.ok(Object.hasOwn(file, key), key)
      for (const [key, value] of Object.entries(file)) {
        assert.ok(TOP_LEVEL[key]?.(value), `${key}: ${JSON.stringify(value)}`)
      }
    })

    test('its schema has a key and items with properties', () => {
      const { key, items } = file.schema
      assert.ok(isMap(key))
      assert.ok(isText(key.name))
      assert.ok(isMap(items))
      assert.ok(isMap(items.properties))
      for (const [name, property] of Object.entries(items.properties)) assert.ok(isMap(property), name)
    })

    test('its methods are verbs of HTTP', () => {
      const params = (file.schema.query_params ?? []) as { methods?: unknown[] }[]
      const verbs = [
        ...verbsIn(file.methods),
        ...verbsIn(file.security),
        ...params.flatMap(({ methods = [] }) => methods),
      ]
      assert.deepEqual(
        verbs.filter((verb) => !VERBS.includes(verb as string)),
        [],
      )
      for (const key of Object.keys((file.methods ?? {}) as Mapping)) assert.ok(LEVELS.includes(key), key)
      for (const key of Object.keys((file.security ?? {}) as Mapping)) {
        assert.ok([...LEVELS, 'scheme'].includes(key), key)
      }
    })

    test('its schemes of security are ones of OpenAPI', () => {
      const schemes = ((file.security as Mapping | undefined)?.scheme ?? {}) as Record<string, Mapping>
      for (const { type, scheme } of Object.values(schemes)) {
        assert.ok(['apiKey', 'http', 'oauth2', 'openIdConnect'].includes(type as string), String(type))
        if (type === 'http') assert.ok(['basic', 'bearer'].includes(scheme as string), String(scheme))
      }
    })

    test('what is ours stands under schema and nowhere else', () => {
      assert.deepEqual(placesOf(file, /^x-/), ['/schema/x-flux'])
      const foreign = Object.keys(file.schema).filter((key) => !SCHEMA_KEYS.includes(key))
      assert.deepEqual(foreign, ['x-flux'])
    })
  })
}
