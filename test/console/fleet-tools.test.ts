// What one does with a list of clusters: change them all, look at them as a map, keep a view, choose columns.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { openSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import type { TestService } from '../service.ts'
import { READ_TOKEN } from '../service.ts'
import { assertAccessible, assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { consoleFleet, letFleetSpeak } from './console-fleet.ts'
import { editor } from './editor.ts'

describe('work on a list of clusters', { skip, timeout: 300_000 }, () => {
  let service: TestService

  before(async () => {
    // On a real database, as most services are.
    const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
    after(() => rmSync(folder, { recursive: true, force: true }))
    const store = openSqliteStore({ path: join(folder, 'fleet.db'), write: true })
    service = await startConsole({ fleet: consoleFleet(40), store })
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01', 'uat-eu-02'])
  })

  test('labels of all that a selector leaves change as one previewed revision', async () => {
    const { page, faults } = await visit(service, '/fleet?environment=qa')
    await page.getByRole('button', { name: 'Change all 10 clusters' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Of the clusters that environment=qa selects.').waitFor()
    await dialog.getByLabel('Labels', { exact: true }).last().fill('tier=gold nonsense')
    await dialog.getByText('nonsense is neither name=value nor name-').waitFor()
    await dialog.getByLabel('Labels', { exact: true }).last().fill('tier=gold region-')
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Preview' }).click()
    await dialog.getByText('10 documents change').waitFor()
    await dialog.getByLabel('Why').fill('gold for all')
    await dialog.getByRole('button', { name: 'Change', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    const { body } = await service.call('GET', '/clusters/qa-eu-05')
    assert.deepEqual(body.labels, { tier: 'gold' })
    const { body: revisions } = await service.call('GET', '/revisions?limit=1')
    assert.deepEqual([revisions[0].message, revisions[0].change_count], ['gold for all', 10])
    assert.deepEqual(faults, [])
  })

  test('what a filter by state leaves is changed by name, and nothing else', async () => {
    const { page, faults } = await visit(service, '/fleet?contact=current')
    await page.getByRole('button', { name: 'Change all 3 clusters' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Of exactly the 3 clusters that the filter leaves now.').waitFor()
    await dialog.getByText('Values', { exact: true }).click()
    await dialog.getByLabel('Component').fill('podinfo')
    await editor(page, 'Values').fill('{"replicas": "3"}')
    await dialog.getByRole('button', { name: 'Preview' }).click()
    await dialog.getByText('3 clusters receive something different').waitFor()
    await dialog.getByRole('button', { name: 'Change', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    const valuesOf = async (id: string) => (await service.call('GET', `/clusters/${id}`)).body.patches
    assert.equal((await valuesOf('uat-eu-02')).podinfo.replicas, '3')
    assert.deepEqual(await valuesOf('prod-eu-03'), {})
    assert.deepEqual(faults, [])
  })

  test('a definition is assigned to all that a filter leaves, with overrides, and taken away again', async () => {
    const { page, faults } = await visit(service, '/fleet?environment=uat')
    const dialog = page.getByRole('dialog')
    const choose = async (kind: string) => {
      await page.getByRole('button', { name: 'Change all 10 clusters' }).click()
      await dialog.getByText(kind, { exact: true }).click()
      await dialog.getByRole('combobox', { name: 'Type' }).click()
      await page.getByRole('option', { name: 'platform_components' }).click()
      await dialog.getByRole('combobox', { name: 'Definition' }).fill('grafana')
    }
    const finish = async (meant?: string) => {
      await dialog.getByRole('button', { name: 'Preview' }).click()
      await dialog.getByText('10 documents change').waitFor()
      if (meant) await dialog.getByLabel(meant).check()
      await dialog.getByRole('button', { name: 'Change', exact: true }).click()
      await dialog.waitFor({ state: 'hidden' })
    }
    const assigned = async () => {
      const { body } = await service.call('GET', '/clusters/uat-eu-06')
      return body.platform_components.filter(({ id }: { id: string }) => id === 'grafana')
    }
    const grafana = {
      id: 'grafana',
      component_path: 'x',
      component_version: '1',
      oci_url: 'oci://x',
      oci_tag: 'v1',
    }
    assert.equal((await service.call('POST', '/platform_components', { body: grafana })).status, 201)
    await choose('Assign')
    await editor(page, 'Overrides').fill('{"oci_tag": "v7.0.0"}')
    await finish()
    assert.deepEqual(await assigned(), [{ id: 'grafana', enabled: true, oci_tag: 'v7.0.0' }])
    await choose('Unassign')
    await finish('I know that clusters lose what is listed above')
    assert.deepEqual(await assigned(), [])
    assert.deepEqual(faults, [])
  })

  test('all that a filter leaves are held with a reason, and released', async () => {
    const { page, faults } = await visit(service, '/fleet?environment=dev')
    const dialog = page.getByRole('dialog')
    const act = async (verb: string, words: string, reason?: string) => {
      await page.getByRole('button', { name: 'Change all 10 clusters' }).click()
      await dialog.getByText(verb, { exact: true }).click()
      if (reason) await dialog.getByLabel('Why it is held').fill(reason)
      await dialog.getByRole('button', { name: 'Preview' }).click()
      await dialog.getByText(words).waitFor()
      await dialog.getByRole('button', { name: verb, exact: true }).click()
      await dialog.waitFor({ state: 'hidden' })
    }
    await act('Hold', '10 documents change; no cluster receives anything differently.', 'a migration')
    const { body } = await service.call('GET', '/holds')
    assert.deepEqual([body.length, body[0].reason, 'until' in body[0]], [10, 'a migration', true])
    const held = await visit(service, '/rollouts')
    await held.page
      .getByRole('region', { name: 'Holds' })
      .getByRole('row', { name: /dev-eu-04.*a migration/ })
      .waitFor()
    await act('Release', '10 documents change; no cluster receives anything differently.')
    assert.equal((await service.call('GET', '/holds')).body.length, 0)
    assert.deepEqual(faults, [])
  })

  test('who may only read is offered no change, and nobody one of the whole fleet', async () => {
    const reader = await visit(service, '/fleet?environment=qa', { token: READ_TOKEN })
    await reader.page.getByText('10 clusters').waitFor()
    assert.equal(await reader.page.getByRole('button', { name: /^Change/ }).count(), 0)
    const writer = await visit(service, '/fleet')
    await writer.page.getByText('40 clusters').waitFor()
    assert.equal(await writer.page.getByRole('button', { name: /^Change/ }).count(), 0)
  })

  test('the heat map counts as the list does, and leads to exactly these clusters', async () => {
    const { page, faults } = await visit(service, '/fleet?map=true')
    const qa = page.getByRole('row', { name: /^qa/ })
    await qa.getByRole('link', { name: '9', exact: true }).first().click()
    await page.getByText('9 clusters', { exact: true }).waitFor()
    const { searchParams } = new URL(page.url())
    assert.deepEqual([searchParams.get('environment'), searchParams.get('contact')], ['qa', 'never'])
    await page.goto(`${service.url}/console/fleet?map=true`)
    await page.getByLabel('Split by label').fill('tier')
    await page.getByLabel('Split by label').press('Enter')
    await page
      .getByRole('row', { name: /^qa gold/ })
      .getByRole('link', { name: '9', exact: true })
      .first()
      .click()
    await page.getByText('9 clusters', { exact: true }).waitFor()
    assert.equal(new URL(page.url()).searchParams.get('selector'), 'tier=gold')
    assert.deepEqual(faults, [])
  })

  test('views, favourites and columns are kept in the browser', async () => {
    const { page, faults } = await visit(service, '/fleet?environment=prod')
    await page.getByRole('button', { name: 'Favourite prod-eu-07' }).click()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByLabel('Save this view as').fill('Production')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Columns' }).click()
    await page.getByLabel('Operator').uncheck()
    await page.goto(`${service.url}/console/fleet`)
    await page.getByText('40 clusters').waitFor()
    assert.equal(await page.getByRole('columnheader', { name: 'Operator' }).count(), 0)
    await page.getByRole('button', { name: 'Views' }).click()
    await assertAccessible(page)
    await page.getByRole('link', { name: 'Production' }).click()
    await page.getByText('10 clusters').waitFor()
    await page.getByRole('button', { name: 'Views' }).click()
    await page.getByRole('link', { name: 'Favourites' }).click()
    await page.getByText('1 cluster', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'prod-eu-07' }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('the heat map is accessible and fits, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, '/fleet?map=true', 'Environment')
  })
})
