import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes } from '../../../test/service.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Problem } from '../../base/problem.ts'
import { finish } from '../../base/steps.ts'
import type { Grant } from '../access/grant.ts'
import type { Command } from '../commands/command.ts'
import { decide } from '../commands/decide.ts'
import { Comparison } from '../delivery/compare-served.ts'
import { State } from '../documents/state.ts'
import type { Types } from '../types/resource-type.ts'
import { checkScope } from './check-scope.ts'

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
after(() => rmSync(folder, { recursive: true, force: true }))
/** A type that clusters are given, and whose documents name a namespace; and books of another shape. */
const quotas = {
  kind: 'quotas',
  apiVersion: 'v1',
  schema: {
    type: 'array',
    key: { name: 'id', schema: { type: 'string' } },
    'x-flux': {
      endpoint: 'quotas',
      assigned_by: 'quotas',
      references: { for: 'namespaces' },
      input: ['for'],
    },
    items: { type: 'object', properties: { for: { type: 'string' } } },
  },
}
const notes = {
  kind: 'notes',
  apiVersion: 'v1',
  schema: {
    type: 'array',
    key: { name: 'id' },
    'x-flux': { bookkeeping: true },
    items: { type: 'object', properties: { documents: { type: 'string' } } },
  },
}
writeFileSync(join(folder, 'quota.yaml'), JSON.stringify(quotas))
writeFileSync(join(folder, 'note.yaml'), JSON.stringify(notes))
const types: Types = builtInTypes(folder)

function create(type: string, id: string, more: JsonObject = {}): Command {
  return { op: 'create', type, document: { id, ...more }, path: '' }
}

function component(id: string, more: JsonObject = {}): Command {
  const source = { component_path: id, component_version: '1', oci_url: 'oci://x', oci_tag: 'v1' }
  return create('platform_components', id, { ...source, ...more })
}

function cluster(id: string, environment: string, more: JsonObject = {}): Command {
  const own = { cluster_name: id, cluster_dns: `${id}.example.com`, environment }
  return create('clusters', id, { ...own, ...more })
}

function set(id: string, documents: Json): Command {
  return create('applied_sets', id, { documents })
}

function put(id: string, documents: Json): Command {
  return { op: 'replace', type: 'applied_sets', id, document: { id, documents }, path: '' }
}

function remove(type: string, id: string, cascade = false): Command {
  return { op: 'delete', type, id, cascade, purge: false, path: '' }
}

function refs(...ids: string[]): JsonObject[] {
  return ids.map((id) => ({ id }))
}

function apply(state: State, commands: Command[]): void {
  const decided = finish(decide(types, state, commands))
  assert.ok(decided.ok, JSON.stringify(decided))
  state.apply(
    state.revision + 1,
    decided.value.changes.map(({ type, id, after }) => ({
      type,
      id,
      after: after && { document: after.document, deleted: after.deleted, size: after.json.length },
    })),
  )
}

/** What dev has, what prod has, what both have, what a deleted one had and what is free; and sets of these. */
function fleet(): State {
  const state = new State(types)
  apply(state, [
    ...['devs', 'prods', 'shared', 'free', 'gones', 'limited'].map((id) => create('namespaces', id)),
    create('quotas', 'q', { for: 'limited' }),
    component('base'),
    component('top', { depends_on: ['base'] }),
    cluster('dev', 'dev', { namespaces: refs('devs', 'shared'), platform_components: refs('base') }),
    cluster('bare', 'dev'),
    cluster('prod', 'prod', {
      namespaces: refs('prods', 'shared'),
      platform_components: refs('top'),
      quotas: refs('q'),
    }),
    cluster('gone', 'prod', { namespaces: refs('gones') }),
    cluster('gone-dev', 'dev'),
    set('empty', {}),
    set('mixed', { namespaces: ['devs', 'prods'] }),
    set('dead', { clusters: ['gone', 'gone-dev'] }),
    set('old', { namespaces: ['was'], flags: ['x'] }),
  ])
  apply(state, [remove('clusters', 'gone'), remove('clusters', 'gone-dev')])
  return state
}

const state = fleet()
const DEV: Grant = { role: 'editor', selector: 'environment=dev' }

function refusal(commands: Command[], grant: Grant = DEV): Problem | undefined {
  const decided = finish(decide(types, state, commands))
  assert.ok(decided.ok, JSON.stringify(decided))
  const { after, changes } = decided.value
  return finish(checkScope(grant, new Comparison(types, state, after), changes))
}

function reasons(commands: Command[], grant?: Grant): string[] {
  return (refusal(commands, grant)?.details ?? []).map(({ path, message }) => `${path} ${message}`)
}

test('a set belongs to those whose scope covers all that it holds', () => {
  assert.deepEqual(refusal([set('s', { clusters: ['prod'], namespaces: ['devs', 'prods'] })]), {
    code: 'forbidden',
    reason: 'held',
    message:
      'this changes applied_sets/s, which holds what is outside your scope: clusters/prod, namespaces/prods. A set may be changed by those who may delete all that it holds',
    details: [
      {
        path: '/applied_sets/s',
        message: 'holds clusters/prod, which is a cluster outside your scope',
      },
      {
        path: '/applied_sets/s',
        message: 'holds namespaces/prods, which is used by prod outside your scope',
      },
    ],
  })
  const own = { clusters: ['dev', 'bare'], namespaces: ['devs', 'free'], platform_components: ['base'] }
  assert.equal(refusal([set('s', own)]), undefined)
  assert.equal(refusal([put('empty', own)]), undefined)
})

test('what leaves a set or stays in it counts like what enters it', () => {
  const kept = ['/applied_sets/mixed holds namespaces/prods, which is used by prod outside your scope']
  assert.deepEqual(reasons([put('mixed', { namespaces: ['devs', 'prods', 'free'] })]), kept)
  assert.deepEqual(reasons([put('mixed', { namespaces: ['devs'] })]), kept)
  assert.deepEqual(reasons([remove('applied_sets', 'mixed')]), kept)
  assert.deepEqual(reasons([create('namespaces', 'new')]), [])
})

test('clusters count as they were and as they will be, deleted ones too', () => {
  assert.deepEqual(reasons([set('s', { clusters: ['gone'] })]), [
    '/applied_sets/s holds clusters/gone, which does not exist: create it in the same write',
  ])
  assert.deepEqual(reasons([put('dead', {})]), [
    '/applied_sets/dead holds clusters/gone, which is a deleted cluster outside your scope',
  ])
  assert.equal(refusal([cluster('new', 'dev'), set('s', { clusters: ['new'] })]), undefined)
  assert.equal(refusal([remove('clusters', 'bare'), put('empty', {})]), undefined)
})

test('a definition is used by deleted clusters, and through what names it', () => {
  assert.deepEqual(reasons([set('s', { namespaces: ['gones', 'limited', 'shared'] })]), [
    '/applied_sets/s holds namespaces/shared, which is used by prod outside your scope',
    '/applied_sets/s holds namespaces/limited, which is used by prod outside your scope',
    '/applied_sets/s holds namespaces/gones, which is used by deleted cluster gone outside your scope',
  ])
})

test('who has what waits for a definition, and not the definition itself, loses nothing with it', () => {
  assert.equal(refusal([set('s', { platform_components: ['base'] })]), undefined)
  assert.ok(refusal([set('s', { platform_components: ['top'] })]))
})

test('nothing enters that does not exist, is of no known type, or is a set itself', () => {
  assert.deepEqual(
    reasons([put('empty', { namespaces: ['later'], flags: ['x'], applied_sets: ['mixed'] })]),
    [
      '/applied_sets/empty holds namespaces/later, which does not exist: create it in the same write',
      '/applied_sets/empty holds flags/x, which is of an unknown type',
      '/applied_sets/empty holds applied_sets/mixed, which is a set itself',
    ],
  )
  assert.equal(refusal([create('namespaces', 'later'), put('empty', { namespaces: ['later'] })]), undefined)
})

test('what is gone may leave a set, and stay only if its type is known', () => {
  assert.equal(refusal([put('old', { namespaces: ['devs'] })]), undefined)
  assert.equal(refusal([put('old', { namespaces: ['was', 'devs'] })]), undefined)
  assert.deepEqual(reasons([put('old', { flags: ['x'] })]), [
    '/applied_sets/old holds flags/x, which is of an unknown type',
  ])
})

test('with types, all that deleting an entry touches must be of them', () => {
  const grant: Grant = { role: 'editor', types: ['namespaces', 'applied_sets'] }
  assert.equal(refusal([put('mixed', { namespaces: ['prods', 'free'] })], grant), undefined)
  assert.deepEqual(reasons([put('empty', { namespaces: ['devs'], clusters: ['bare'] })], grant), [
    '/applied_sets/empty holds clusters/bare, which is of the type clusters',
  ])
  const clusters: Grant = { role: 'editor', types: ['clusters', 'applied_sets'] }
  assert.equal(refusal([put('empty', { clusters: ['bare'] })], clusters), undefined)
  assert.deepEqual(reasons([put('empty', { clusters: ['dev'] })], clusters), [
    '/applied_sets/empty holds clusters/dev, which is assigned what is of the types namespaces, platform_components',
  ])
})

test('admins, and editors without a limit, change any set', () => {
  const commands = [put('mixed', { clusters: ['prod', 'later'], flags: ['y'] })]
  assert.equal(refusal(commands, { role: 'admin' }), undefined)
  assert.equal(refusal(commands, { role: 'editor' }), undefined)
})

test('books of another shape hold nothing', () => {
  assert.equal(refusal([create('notes', 'n', { documents: 'namespaces' })]), undefined)
})

test('many entries are told in a bounded number of details', () => {
  const many = Array.from({ length: 80 }, (_, i) => `n${i}`)
  const problem = refusal([put('empty', { namespaces: many })])
  assert.match(problem?.message ?? '', /namespaces\/n0, .* and 75 more\. A set/)
  assert.equal(problem?.details?.length, 50)
})

const entry = fc.constantFrom(
  ...['devs', 'prods', 'shared', 'free', 'gones'].map((id) => ['namespaces', id] as const),
  ...['base', 'top'].map((id) => ['platform_components', id] as const),
  ...['dev', 'bare', 'prod'].map((id) => ['clusters', id] as const),
)
const grants: Grant[] = [
  ...['environment=dev', 'environment=prod', 'id=bare', 'id'].map((selector): Grant => {
    return { role: 'editor', selector }
  }),
  ...[['namespaces'], ['clusters'], ['namespaces', 'platform_components', 'clusters']].map((names): Grant => {
    return { role: 'editor', types: ['applied_sets', ...names] }
  }),
]

test('a set may be written exactly by those who may delete every document in it', () => {
  const count = { allowed: 0, refused: 0 }
  const deletable = ([type, id]: readonly [string, string], grant: Grant) =>
    refusal([remove(type, id, true)], grant) === undefined
  fc.assert(
    fc.property(
      fc.uniqueArray(entry, { minLength: 1, maxLength: 4, selector: (each) => each.join('/') }),
      fc.constantFrom(...grants),
      fc.constantFrom('mixed', 'empty', 'new'),
      (entries, grant, id) => {
        const documents: Record<string, string[]> = {}
        for (const [type, each] of entries) documents[type] = [...(documents[type] ?? []), each]
        const before = id === 'mixed' ? (['devs', 'prods'] as const) : []
        // What changes nothing is refused to nobody.
        fc.pre(JSON.stringify(documents) !== JSON.stringify({ namespaces: before }))
        const all = [...entries, ...before.map((each) => ['namespaces', each] as const)]
        const problem = refusal([id === 'new' ? set(id, documents) : put(id, documents)], grant)
        assert.equal(
          problem === undefined,
          all.every((each) => deletable(each, grant)),
          `${problem?.message}`,
        )
        count[problem ? 'refused' : 'allowed']++
      },
    ),
    { numRuns: 500 },
  )
  assert.ok(count.allowed > 50 && count.refused > 50, JSON.stringify(count))
})
