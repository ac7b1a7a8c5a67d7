// Rollouts in the console: started with a dry run of all waves, looked at wave by wave, and led by people with reasons.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { JsonObject } from '../../src/base/json.ts'
import { ReportingCluster } from '../reporting-clusters.ts'
import { READ_TOKEN, type TestService } from '../service.ts'
import { assertAccessible, assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet } from './console-fleet.ts'
import { editor } from './editor.ts'

const STRATEGY = {
  id: 'canary-first',
  description: `Two canaries ${ATTACK}`,
  waves: [
    {
      name: 'canary',
      clusters: ['dev-eu-00', 'dev-eu-04'],
      gates: { applied_percent: 100, healthy_percent: 50, failures: 0, soak_s: 600 },
    },
    { name: 'half', percent: 50, approval: { before: { count: 1 } } },
    { name: 'rest', rest: true },
  ],
}

describe('rollouts', { skip, timeout: 300_000 }, () => {
  let service: TestService
  let standing = ''

  before(async () => {
    service = await startConsole({ fleet: { ...consoleFleet(), strategies: [STRATEGY] } })
    for (const id of ['dev-eu-00', 'dev-eu-04', 'qa-eu-01']) await new ReportingCluster(service, id).settle()
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'traefik', patch: { oci_tag: 'v3.0.0' } },
    ]
    const body = { operations, message: `ingress ${ATTACK}`, rollout: { strategy: STRATEGY.id } }
    const started = await service.call('POST', '/batch', { body })
    assert.equal(started.status, 202, started.text)
    standing = started.body.rollout.id
    await new ReportingCluster(service, 'dev-eu-00').settle()
  })

  /** A rollout of another tag, whose id it returns. */
  async function start(component: string, oci_tag: string, rollout: object = { strategy: STRATEGY.id }) {
    const operations = [{ op: 'patch', type: 'platform_components', id: component, patch: { oci_tag } }]
    const { status, body, text } = await service.call('POST', '/batch', {
      body: { operations, rollout } as JsonObject,
    })
    assert.equal(status, 202, text)
    return String(body.rollout.id)
  }

  test('shows waves with what gates need, each cluster with its state, and what it waits for', async () => {
    const { page, faults } = await visit(service, `/rollouts/${standing}`)
    const canary = page.getByRole('article', { name: 'Wave canary' })
    await canary.getByText('1 of 2 applied, needs 2').waitFor()
    await canary.getByRole('link', { name: 'dev-eu-04: open' }).waitFor()
    assert.match(
      (await canary.getByRole('link', { name: 'dev-eu-00' }).getAttribute('aria-label')) ?? '',
      /applied|healthy/,
    )
    const { waiting_for } = (await service.call('GET', `/rollouts/${standing}`)).body
    if (waiting_for) await page.getByText(waiting_for).waitFor()
    await page.getByRole('heading', { name: `ingress ${ATTACK}` }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('one is started from an edited document, after a dry run of its waves with their duration', async () => {
    const { page, faults } = await visit(service, '/rollouts')
    await page.getByRole('link', { name: 'Start a rollout' }).click()
    await page.getByRole('combobox', { name: 'Type', exact: true }).click()
    await page.getByRole('option', { name: 'platform_components' }).click()
    const document = page.getByRole('combobox', { name: 'Document', exact: true })
    await document.fill('podinfo')
    await document.press('Enter')
    const text = editor(page, 'platform_components/podinfo')
    const shown = await text.text()
    await text.fill(`${shown}}`)
    await page.getByText('is not JSON').waitFor()
    await text.fill(shown.replace('"oci_tag": "v1.0.0"', '"oci_tag": "v2.0.0"'))
    await page.getByText('/oci_tag').waitFor()
    await page.getByRole('combobox', { name: 'Strategy' }).click()
    await page.getByRole('option', { name: STRATEGY.id }).click()
    await page.getByText(STRATEGY.description).waitFor()
    await page.getByRole('button', { name: 'Preview waves and duration' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/3 waves; it takes at least \d+/).waitFor()
    await dialog.getByText('2 of 2 applied').waitFor()
    await dialog.getByText('1 approval before').waitFor()
    await dialog.getByLabel('Why').fill('podinfo 2')
    await dialog.getByRole('button', { name: 'Start the rollout' }).click()
    await page.getByRole('heading', { name: /^Rollout r\d+/ }).waitFor()
    await page.getByRole('heading', { name: 'podinfo 2' }).waitFor()
    const { body } = await service.call('GET', '/rollouts')
    assert.deepEqual([body[0].message, body[0].strategy, body[0].waves.length], ['podinfo 2', STRATEGY.id, 3])
    assert.equal((await service.call('GET', '/platform_components/podinfo')).body.oci_tag, 'v1.0.0')
    assert.deepEqual(faults, [])
  })

  test('waits for people wave by wave: each is approved where it stands, with a reason', async () => {
    const id = await start('cert-manager', 'v4.0.0', {
      waves: [
        { name: 'half', percent: 50, approval: { before: { count: 1 }, after: { not_starter: true } } },
        { name: 'rest', rest: true },
      ],
    })
    const { page, faults } = await visit(service, `/rollouts/${id}`)
    const half = page.getByRole('article', { name: 'Wave half' })
    await half.getByRole('button', { name: 'Approve before half' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Why').fill('agreed')
    await dialog.getByRole('button', { name: 'Approve', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByRole('region', { name: 'Approvals and checks' }).getByText('agreed').waitFor()
    await page
      .getByRole('button', { name: /^Approve/ })
      .first()
      .waitFor({ state: 'detached' })
    // Who started it may not: another has to.
    await half.getByText('needs 1 more approval after wave half by somebody other than writer').waitFor()
    await service.call('POST', `/rollouts/${id}/abort`, { body: {} })
    await page.getByText('It aborted.').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Approve/ }).count(), 0)
    assert.deepEqual(faults, [])
  })

  test('gets another change and other waves in place of its own, from what it was started with', async () => {
    const id = await start('cert-manager', 'v5.0.0')
    const { page, faults } = await visit(service, `/rollouts/${id}`)
    await page.getByText('"v5.0.0"').waitFor()
    await page.getByRole('button', { name: 'More…' }).click()
    await page.getByRole('menuitem', { name: 'Amend' }).click()
    await page.getByRole('heading', { name: `Amend rollout ${id}` }).waitFor()
    const operations = editor(page, 'Operations')
    await operations.fill((await operations.text()).replace('v5.0.0', 'v5.0.1'))
    await page.getByText('Own waves', { exact: true }).click()
    await editor(page, 'Waves').fill('{"waves": [{"name": "everybody", "rest": true}]}')
    await page.getByRole('button', { name: 'Preview waves and duration' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText(/1 wave; it takes at least/).waitFor()
    await dialog.getByRole('button', { name: 'Amend', exact: true }).click()
    await page.getByRole('heading', { name: `Rollout ${id}`, exact: true }).waitFor()
    await page.getByRole('article', { name: 'Wave everybody' }).waitFor()
    await page.getByText('"v5.0.1"').waitFor()
    await service.call('POST', `/rollouts/${id}/abort`, { body: {} })
    assert.deepEqual(faults, [])
  })

  test('is superseded by another one in the same revision', async () => {
    const id = await start('cert-manager', 'v6.0.0')
    const { page, faults } = await visit(service, `/rollouts/new?supersedes=${id}`)
    const operations = editor(page, 'Operations')
    await operations.fill((await operations.text()).replace('v6.0.0', 'v6.0.1'))
    await page.getByRole('button', { name: 'Preview waves and duration' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Start the rollout' }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('"v6.0.1"').waitFor()
    const next = page.url().split('/').at(-1)
    const stateOf = async (each: unknown) => (await service.call('GET', `/rollouts/${each}`)).body.state
    assert.deepEqual([await stateOf(id), await stateOf(next)], ['aborted', 'running'])
    await service.call('POST', `/rollouts/${next}/abort`, { body: {} })
    assert.deepEqual(faults, [])
  })

  test('the line is stopped for all of them and started again; a freeze covers a part of the fleet', async () => {
    const { page, faults } = await visit(service, '/rollouts')
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Stop the line…' }).click()
    await page.getByLabel('Why', { exact: true }).fill(`the registry is down ${ATTACK}`)
    await page.getByRole('button', { name: 'Preview…' }).click()
    await dialog.getByRole('button', { name: 'Stop the line', exact: true }).click()
    const freezes = page.getByRole('region', { name: 'Freezes' })
    await freezes.getByText('until somebody ends it').waitFor()
    assert.equal((await service.call('GET', '/freezes/stop-the-line')).body.blocks, 'rollouts')
    await page.getByRole('button', { name: 'Start the line again' }).click()
    await dialog.getByRole('button', { name: 'Start the line', exact: true }).click()
    await page.getByText('Nothing is frozen').waitFor()
    await page.getByRole('button', { name: 'New freeze…' }).click()
    await page.getByLabel('Name', { exact: true }).fill('audit')
    await page.getByLabel('Why', { exact: true }).fill('an audit looks at it')
    await page.getByRole('combobox', { name: 'Selector' }).fill('environment=prod')
    await page.getByRole('combobox', { name: 'Selector' }).press('Enter')
    await assertAccessible(page)
    await page.getByRole('button', { name: 'Preview…' }).click()
    await dialog.getByRole('button', { name: 'Freeze', exact: true }).click()
    await freezes.getByText(/ends in \d/).waitFor()
    await freezes.getByRole('link', { name: 'environment=prod' }).waitFor()
    await service.call('DELETE', '/freezes/audit')
    assert.deepEqual(faults, [])
  })

  test('is paused with a reason that stands in its log, resumed, and a wave is left out', async () => {
    const { page, faults } = await visit(service, `/rollouts/${standing}`)
    const dialog = page.getByRole('dialog')
    const confirm = async (verb: string) => {
      await dialog.getByRole('button', { name: verb, exact: true }).click()
      await dialog.waitFor({ state: 'hidden' })
    }
    await page.getByRole('button', { name: 'Pause…' }).click()
    await dialog.getByLabel('Why').fill('the dashboards look odd')
    await confirm('Pause')
    await page.getByRole('region', { name: 'Log' }).getByText('the dashboards look odd').waitFor()
    await page.getByRole('button', { name: 'Resume…' }).click()
    await confirm('Resume')
    await page.getByRole('button', { name: 'Pause…' }).waitFor()
    await page.getByRole('button', { name: 'More…' }).click()
    await page.getByRole('menuitem', { name: 'Skip wave half' }).click()
    await confirm('Skip')
    await page.getByRole('article', { name: 'Wave half' }).getByText('skipped').waitFor()
    await page.getByLabel('Clusters', { exact: true }).fill('dev-eu-04')
    await page.getByRole('button', { name: 'Leave out…' }).click()
    await confirm('Leave out')
    await page.getByRole('link', { name: 'dev-eu-04: skipped' }).waitFor()
    assert.deepEqual((await service.call('GET', `/rollouts/${standing}`)).body.skipped, ['dev-eu-04'])
    assert.deepEqual(faults, [])
  })

  test('that is not through is finished only by whoever says that it is meant', async () => {
    const operations = [
      { op: 'patch', type: 'platform_components', id: 'cert-manager', patch: { oci_tag: 'v9.0.0' } },
    ]
    const body = { operations, rollout: { strategy: STRATEGY.id } }
    const { id } = (await service.call('POST', '/batch', { body })).body.rollout
    const { page, faults } = await visit(service, `/rollouts/${id}`)
    await page.getByRole('button', { name: 'More…' }).click()
    await page.getByRole('menuitem', { name: 'Finish now' }).click()
    const dialog = page.getByRole('dialog')
    const finish = dialog.getByRole('button', { name: 'Finish now', exact: true })
    await dialog.getByLabel('I know that this finishes the rollout at once').waitFor()
    assert.ok(await finish.isDisabled())
    await dialog.getByLabel('I know that this finishes the rollout at once').check()
    await finish.click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('It finished.').waitFor()
    assert.equal((await service.call('GET', '/platform_components/cert-manager')).body.oci_tag, 'v9.0.0')
    assert.equal(await page.getByRole('button', { name: 'Pause…' }).count(), 0)
    await page.goto(`${service.url}/console/rollouts?state=finished`)
    await page.getByRole('link', { name: id, exact: true }).waitFor()
    assert.equal(await page.getByRole('link', { name: standing, exact: true }).count(), 0)
    assert.deepEqual(faults, [])
  })

  test('a reader is offered no action on them', async () => {
    const { page } = await visit(service, `/rollouts/${standing}`, { token: READ_TOKEN })
    await page.getByRole('article', { name: 'Wave canary' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Pause…' }).count(), 0)
  })

  test('are accessible and fit, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, `/rollouts/${standing}`, 'canary')
    await assertGoodEverywhere(service, '/rollouts', 'ingress')
    await assertGoodEverywhere(
      service,
      '/rollouts/new?type=platform_components&id=podinfo',
      'no difference yet',
    )
  })
})
