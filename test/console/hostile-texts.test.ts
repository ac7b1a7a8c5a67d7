// Nothing that users type and clusters send is ever HTML: an attack in every field that takes it, found by the schemas.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { Noun } from '../../src/api/noun.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { TestService } from '../service.ts'
import { skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'
import { ATTACKS, attackRequests, attacksOn, send } from './hostile-requests.ts'

const CLUSTER = 'dev-eu-00'
const DNS = `/api/v2/flux/clusters/${CLUSTER}.k8s.example.com`
describe('texts that try to be HTML', { skip, timeout: 300_000 }, () => {
  let service: TestService
  let types: readonly Noun[] = []
  /** What was taken, by type. */
  const taken = new Map<string, number>()
  let refused: string[] = []
  let rollout = ''

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
    await startRollout()
    refused = await attackRequests(
      service,
      { cluster: CLUSTER, dns: DNS, rollout },
      types.map(({ name }) => name),
    )
    const query = new URLSearchParams({ v: '1', every: '300', namespaces: ATTACK, part: ATTACK })
    for (const ready of ATTACKS) query.append('ready', `${ready}:${ready}`)
    for (const path of ['namespaces', `ack?${query}`]) await send(service, 'GET', `${DNS}/${path}`, null)
  })

  async function startRollout(): Promise<void> {
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'traefik', patch: { component_version: ATTACK } },
    ]
    const waves = [
      {
        name: 'all',
        rest: true,
        approval: { before: { count: 1 } },
        gates: { checks: [{ name: 'outside' }] },
      },
    ]
    const { status, body, text } = await service.call('POST', '/batch', {
      body: { operations, message: ATTACK, rollout: { waves } },
    })
    assert.equal(status, 202, text)
    rollout = body.rollout.id
  }

  /** Fields that are taken stay; those that a type has a form for are refused, and nothing is written. */
  async function attack(noun: Noun, before: JsonObject, patch: JsonObject): Promise<void> {
    const [[field = '', value = null] = []] = Object.entries(patch)
    const own = before[field]
    // An item of a list is given beside those that are there, which the document needs.
    const whole = Array.isArray(value) && Array.isArray(own) ? { [field]: [...own, ...value] } : patch
    const { status } = await send(service, 'PATCH', `/${noun.name}/${idOf(noun)}`, whole)
    assert.ok([200, 400, 409].includes(status), `${JSON.stringify(patch)}: ${status}`)
    if (status === 200) taken.set(noun.name, (taken.get(noun.name) ?? 0) + 1)
  }

  test('are taken in fields of every type, and are texts on every page', async () => {
    const attacked = types.filter(({ bookkeeping }) => !bookkeeping).map(({ name }) => name)
    assert.deepEqual([...taken.keys()].sort(), attacked.sort())
    // In the state that the rollout and the fleet are in, these are refused whatever they say.
    assert.deepEqual(refused, ['rotate_token', 'check_rollout', 'finish_rollout', 'revert_revision'])
    const { page, faults } = await visit(service, '/')
    const views = [
      '',
      '?view=inputs',
      '?view=inputs&endpoint=platform-components',
      '?view=values',
      '?view=setup',
    ]
    const typed = encodeURIComponent(ATTACK)
    const paths = [
      ...['/', '/fleet', '/changes', '/rollouts', '/access', '/system', `/rollouts/${rollout}`],
      ...[...views, '?view=compare&other=qa-eu-01'].map((view) => `/clusters/${CLUSTER}${view}`),
      ...types.flatMap((noun) =>
        noun.cluster || noun.bookkeeping
          ? []
          : [`/catalog?type=${noun.name}`, `/catalog/${noun.name}/${idOf(noun)}`],
      ),
      ...[2, 3, 4].map((revision) => `/changes/${revision}`),
      // Whoever sends a link types all of it.
      ...[
        `/fleet?q=${typed}&selector=${typed}`,
        `/fleet?map=true&by=${typed}`,
        `/changes?q=${typed}&since=${typed}`,
      ],
      ...[`/clusters/${typed}`, `/clusters/${CLUSTER}?view=compare&other=${typed}&past=${typed}`],
      ...[
        `/catalog?type=${typed}&q=${typed}`,
        `/catalog/${typed}/${typed}`,
        `/rollouts/${typed}`,
        `/changes/${typed}`,
      ],
    ]
    for (const path of paths) {
      await page.goto(`${service.url}/console${path}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      const loading = page.locator('[aria-busy=true]')
      while ((await loading.count()) > 0) await loading.first().waitFor({ state: 'detached' })
      await assertNothingMade(path)
    }
    await page.goto(`${service.url}/console/clusters/${CLUSTER}`)
    await page.getByText(ATTACK).first().waitFor()
    await page.goto(`${service.url}/console/rollouts/${rollout}`)
    await page.getByRole('region', { name: 'Log' }).getByText(ATTACK).first().waitFor()
    await page.goto(`${service.url}/console/fleet`)
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByLabel('Save this view as').fill(ATTACK)
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByText(ATTACK).first().waitFor()
    await assertNothingMade('saved views')
    await page.keyboard.press('Escape')
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Search clusters').fill(ATTACK)
    await assertNothingMade('the palette')
    assert.deepEqual(faults, [])

    async function assertNothingMade(where: string): Promise<void> {
      const made = await page.evaluate<string[]>(
        `[...document.querySelectorAll('img, [onerror], [onload], script:not([src]), a[href^="javascript:" i]')].map((each) => each.outerHTML)`,
      )
      assert.deepEqual(made, [], where)
    }
  })
})
