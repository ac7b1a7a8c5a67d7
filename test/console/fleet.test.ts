// The fleet and its clusters in the console: filters are the URL, figures agree, and every action is previewed.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { TestService } from '../service.ts'
import { assertAccessible, assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'

describe('the fleet', { skip, timeout: 300_000 }, () => {
  let service: TestService

  before(async () => {
    service = await startConsole({ fleet: consoleFleet(400) })
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01', 'uat-eu-02'])
  })

  test('only rows in sight are in the page, and others are read as one scrolls', async () => {
    const { page, faults } = await visit(service, '/fleet')
    await page.getByText('400 clusters').waitFor()
    await page.getByRole('link', { name: 'dev-eu-00' }).waitFor()
    assert.ok((await page.getByRole('row').count()) < 80)
    await page.getByRole('region', { name: 'Clusters' }).evaluate((list) => list.scrollTo(0, 1e9))
    await page.getByRole('link', { name: 'uat-eu-98' }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('a filter is a link, counts are those of the list, and a wrong selector is told in the words of the service', async () => {
    const { page, faults } = await visit(service, '/fleet')
    const prod = page.getByRole('button', { name: /^prod/ })
    await prod.getByText('100').waitFor()
    await prod.click()
    await page.getByText('100 clusters').waitFor()
    assert.match(page.url(), /environment=prod/)
    const selector = page.getByRole('combobox', { name: 'Selector' })
    await selector.fill('region=us')
    await selector.press('Enter')
    await page.waitForURL(/selector=region/)
    await page.getByText('100 clusters').waitFor()
    await page.reload()
    await page.getByText('100 clusters').waitFor()
    await selector.fill('region=(')
    await selector.press('Enter')
    const { body } = await service.call('GET', '/status?selector=region%3D(')
    await page.getByText(body.details[0].message).first().waitFor()
    await page.getByRole('button', { name: 'Clear all filters' }).click()
    await page.getByText('400 clusters').waitFor()
    assert.deepEqual(faults, [])
  })

  test('a cluster that was opened from a filtered list knows its neighbours there', async () => {
    const { page, faults } = await visit(service, '/fleet?environment=qa')
    await page.getByRole('link', { name: 'qa-eu-05' }).click()
    await page.getByText('2 of 100').waitFor()
    await page.getByRole('link', { name: 'The next cluster, qa-eu-09' }).click()
    await page.getByRole('heading', { name: 'qa-eu-09' }).waitFor()
    await page.getByText('3 of 100').waitFor()
    assert.deepEqual(faults, [])
  })

  test('a cluster shows what was typed and sent as text', async () => {
    const { page, faults } = await visit(service, '/clusters/dev-eu-00')
    await page.getByText(`InstallFailed: helm install failed: ${ATTACK}`).waitFor()
    await page.getByRole('link', { name: 'Own values' }).click()
    await page.getByText(ATTACK, { exact: true }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('an action is previewed, written with its reason, and refused where somebody was quicker', async () => {
    const { page, faults } = await visit(service, '/clusters/prod-eu-03')
    const act = async (name: string) => {
      await page.getByRole('button', { name: 'Actions on prod-eu-03' }).click()
      await page.getByRole('menuitem', { name }).click()
    }
    await act('Protect')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 document changes; no cluster receives anything differently.').waitFor()
    await dialog.getByLabel('Why').fill('für immer – "sicher"')
    await assertAccessible(page)
    await dialog.getByRole('button', { name: 'Protect', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('für immer – "sicher"').waitFor()
    await act('Allow deletion')
    await dialog.getByText('no cluster receives').waitFor()
    await service.call('PATCH', '/clusters/prod-eu-03', { body: { labels: { region: 'asia' } } })
    await dialog.getByRole('button', { name: 'Allow deletion', exact: true }).click()
    await dialog.getByRole('alert').getByText('412 precondition failed').waitFor()
    const { body } = await service.call('GET', '/clusters/prod-eu-03')
    assert.deepEqual([body.deletion_protection, body.labels], [true, { region: 'asia' }])
    assert.deepEqual(faults, [])
  })

  test('a deletion says what the cluster loses, and asks', async () => {
    const { page, faults } = await visit(service, '/clusters/qa-eu-13')
    await page.getByRole('button', { name: 'Actions on qa-eu-13' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 leaving the fleet: Flux removes there everything').waitFor()
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    assert.equal((await service.call('GET', '/clusters/qa-eu-13')).status, 404)
    assert.deepEqual(faults, [])
  })

  test('what others change arrives by itself', async () => {
    const { page } = await visit(service, '/clusters/prod-eu-07?view=values')
    await page.getByText('live', { exact: true }).waitFor()
    await service.call('PATCH', '/clusters/prod-eu-07', { body: { vm_image: 'debian-of-another' } })
    await page.getByText('debian-of-another').first().waitFor()
  })

  test('the list and a cluster are accessible and fit, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, '/fleet', 'dev-eu-00')
    await assertGoodEverywhere(service, '/clusters/dev-eu-00', 'InstallFailed')
  })
})
