// Nothing that users type and clusters send is ever HTML: an attack in every field that takes it, found by the schemas.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Noun } from '../../src/api/noun.ts'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { SchemaObject } from '../../src/base/json-schema.ts'
import type { TestService } from '../service.ts'
import { skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'

const CLUSTER = 'dev-eu-00'
const DNS = `/api/v2/flux/clusters/${CLUSTER}.k8s.example.com`
/** Texts end up in links as well. */
const ATTACKS = [ATTACK, 'javascript:alert(3)', '"><svg onload=alert(4)>']

/** Each place of a document that may hold a text, filled with one, as a merge patch. */
function* attacksOn(
  { type, properties, additionalProperties, items, enum: words }: SchemaObject,
  text: string,
): Generator<Json> {
  const types = [type].flat()
  if (types.includes('string') && !words) yield text as Json
  for (const [name, schema] of Object.entries((properties ?? {}) as Record<string, SchemaObject>))
    for (const value of attacksOn(schema, text)) yield { [name]: value }
  if (typeof additionalProperties === 'object') {
    yield { [text]: text }
    for (const value of attacksOn(additionalProperties as SchemaObject, text)) yield { attacked: value }
  }
  if (items) for (const value of attacksOn(items as SchemaObject, text)) yield [value]
}

describe('texts that try to be HTML', { skip, timeout: 300_000 }, () => {
  let service: TestService
  let types: readonly Noun[] = []
  /** What was taken, by type. */
  const taken = new Map<string, number>()

  const idOf = ({ name, cluster }: Noun): string =>
    cluster
      ? CLUSTER
      : name === 'rolebindings'
        ? 'admins'
        : name === 'platform_components'
          ? 'podinfo'
          : 'one'

  before(async () => {
    service = await startConsole({
      fleet: {
        ...consoleFleet(4),
        namespaces: [{ id: 'one' }, { id: 'podinfo' }],
        rolebindings: [{ id: 'admins', role: 'view', subjects: [{ kind: 'Group', name: 'admins' }] }],
        strategies: [{ id: 'one', waves: [{ name: 'all', rest: true }] }],
        freezes: [{ id: 'one', reason: 'why', until: '2020-01-01T00:00:00Z' }],
      },
    })
    types = (await service.call('GET', '/console/settings.json')).body.types
    for (const noun of types.filter(({ bookkeeping }) => !bookkeeping)) {
      const before = (await service.call('GET', `/${noun.name}/${idOf(noun)}`)).body as JsonObject
      for (const text of ATTACKS)
        for (const patch of attacksOn(noun.schema, text)) await attack(noun, before, patch as JsonObject)
    }
    await letFleetSpeak(service, [CLUSTER])
    await service.call('GET', `${DNS}/namespaces`, { headers: { 'user-agent': `flux-operator/${ATTACK}` } })
    const object = { kind: 'HelmRelease', name: 'traefik', namespace: ATTACK }
    const event = {
      involvedObject: object,
      severity: 'error',
      reason: ATTACK,
      message: ATTACK,
      metadata: { [ATTACK]: ATTACK },
    }
    await service.call('POST', `${DNS}/events`, { body: { ...event, timestamp: new Date().toISOString() } })
  })

  /** Fields that are taken stay; those that a type has a form for are refused, and nothing is written. */
  async function attack(noun: Noun, before: JsonObject, patch: JsonObject): Promise<void> {
    const [[field = '', value = null] = []] = Object.entries(patch)
    const own = before[field]
    // An item of a list is given beside those that are there, which the document needs.
    const whole = Array.isArray(value) && Array.isArray(own) ? { [field]: [...own, ...value] } : patch
    const answer = await service.call('PATCH', `/${noun.name}/${idOf(noun)}`, {
      body: whole,
      headers: { 'x-change-message': ATTACK },
    })
    assert.ok([200, 400, 409].includes(answer.status), `${JSON.stringify(patch)}: ${answer.status}`)
    if (answer.status === 200) taken.set(noun.name, (taken.get(noun.name) ?? 0) + 1)
  }

  test('are taken in fields of every type, and are texts on every page', async () => {
    const attacked = types.filter(({ bookkeeping }) => !bookkeeping).map(({ name }) => name)
    assert.deepEqual([...taken.keys()].sort(), attacked.sort())
    const { page, faults } = await visit(service, '/')
    const views = [
      '',
      '?view=inputs',
      '?view=inputs&endpoint=platform-components',
      '?view=values',
      '?view=setup',
    ]
    const compare = `?view=compare&other=qa-eu-01`
    const paths = [
      ...['/', '/fleet', '/changes', '/rollouts', '/access', '/system'],
      ...[...views, compare].map((view) => `/clusters/${CLUSTER}${view}`),
      ...types.flatMap((noun) =>
        noun.cluster || noun.bookkeeping
          ? []
          : [`/catalog?type=${noun.name}`, `/catalog/${noun.name}/${idOf(noun)}`],
      ),
      ...[2, 3, 4].map((revision) => `/changes/${revision}`),
    ]
    for (const path of paths) {
      await page.goto(`${service.url}/console${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const loading = page.locator('[aria-busy=true]')
      while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' })
      const made = await page.evaluate<string[]>(
        `[...document.querySelectorAll('img, [onerror], [onload], script:not([src]), a[href^="javascript:" i]')].map((each) => each.outerHTML)`,
      )
      assert.deepEqual(made, [], path)
    }
    await page.goto(`${service.url}/console/clusters/${CLUSTER}`)
    await page.getByText(ATTACK).first().waitFor()
    assert.deepEqual(faults, [])
  })
})
