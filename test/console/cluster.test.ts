// One cluster in the console: where its values come from, what it sets itself, how it differs, and how it is kept.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import type { TestService } from '../service.ts'
import { assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'
import { editor } from './editor.ts'

describe('a cluster', { skip, timeout: 180_000 }, () => {
  let service: TestService

  before(async () => {
    service = await startConsole({ fleet: consoleFleet() })
    await letFleetSpeak(service, ['dev-eu-00'])
    const write = (path: string, body: object) => service.call('PATCH', path, { body: body as never })
    await write('/clusters/qa-eu-01', { labels: { region: 'eu', 'flux-ui': 'flux.qa-eu-01.example.com' } })
    await write('/clusters/qa-eu-01/patches/podinfo', { message: ATTACK })
  })

  test('shows who set each value, now and at an earlier time', async () => {
    const { page, faults } = await visit(
      service,
      '/clusters/qa-eu-01?view=inputs&endpoint=platform-components',
    )
    const podinfo = page.getByRole('region', { name: 'Values of podinfo' })
    const row = podinfo.getByRole('row').filter({ hasText: ATTACK })
    await row.getByText('value of this cluster').waitFor()
    await row.getByRole('link', { name: '#3' }).waitFor()
    await page.getByLabel('As it was at').fill('2')
    await page.getByLabel('As it was at').press('Enter')
    await page.getByRole('heading', { name: 'Inputs at 2' }).waitFor()
    await podinfo.getByText('/component_path').waitFor()
    assert.equal(await page.getByText(ATTACK).count(), 0)
    await page.getByLabel('As it was at').fill('whenever')
    await page.getByLabel('As it was at').press('Enter')
    await page.getByText('must be a revision or an RFC 3339 time').first().waitFor()
    assert.deepEqual(faults, [])
  })

  test('has its own values edited in place, after a preview', async () => {
    const { page, faults } = await visit(service, '/clusters/prod-eu-03?view=values')
    await page.getByRole('button', { name: 'Edit platform_components/podinfo' }).click()
    await editor(page, 'Overrides of podinfo').fill('{"oci_tag": "v7.0.0"}')
    await editor(page, 'Values of podinfo').fill('{"replicas": "5"}')
    await page.getByRole('button', { name: 'Preview…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 cluster receives something different').waitFor()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('oci_tag=v7.0.0').waitFor()
    const { body } = await service.call('GET', '/clusters/prod-eu-03')
    assert.deepEqual(
      [body.platform_components[2], body.patches],
      [{ id: 'podinfo', enabled: true, oci_tag: 'v7.0.0' }, { podinfo: { replicas: '5' } }],
    )
    assert.deepEqual(faults, [])
  })

  test('that somebody else changed meanwhile is shown as it was, as it is, and as one would make it', async () => {
    const { page, faults } = await visit(service, '/clusters/prod-eu-07?view=values')
    await page.getByRole('button', { name: 'Edit platform_components/podinfo' }).click()
    await editor(page, 'Overrides of podinfo').fill('{"oci_tag": "v8.0.0"}')
    await service.call('PATCH', '/clusters/prod-eu-07', { body: { vm_image: 'debian-of-another' } })
    await service.call('PATCH', '/clusters/prod-eu-07/platform_components/podinfo', {
      body: { oci_tag: 'v6.0.0' },
    })
    await page.getByRole('button', { name: 'Preview…' }).click()
    const dialog = page.getByRole('dialog')
    const difference = dialog.getByRole('region', { name: 'Three-way difference' })
    const tag = difference.getByRole('row').filter({ hasText: 'v8.0.0' })
    await tag.waitFor()
    assert.deepEqual(await tag.getByRole('cell').allInnerTexts(), ['none', '"v6.0.0"', '"v8.0.0"', 'both'])
    await difference.getByRole('row').filter({ hasText: 'debian-of-another' }).waitFor()
    await dialog.getByRole('button', { name: 'Preview mine on top of it' }).click()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    const { body } = await service.call('GET', '/clusters/prod-eu-07')
    assert.deepEqual([body.vm_image, body.platform_components[2].oci_tag], ['debian-of-another', 'v8.0.0'])
    assert.deepEqual(faults, [])
  })

  test('is compared with another one, and with itself at another time', async () => {
    const { page, faults } = await visit(service, '/clusters/dev-eu-00?view=compare')
    await page.getByLabel('With the cluster').fill('dev-eu-04')
    await page.getByLabel('With the cluster').press('Enter')
    const components = page.getByRole('region', { name: 'Differences of platform-components' })
    await components.getByText('/patches/message').waitFor()
    await page.getByRole('region', { name: 'Differences of namespaces' }).getByText('no difference').waitFor()
    await page.goto(`${service.url}/console/clusters/qa-eu-01?view=compare&past=2`)
    await components.getByText('/patches/message').waitFor()
    assert.deepEqual(faults, [])
  })

  test('is held with a reason, and released', async () => {
    const { page, faults } = await visit(service, '/clusters/uat-eu-02?view=setup')
    await page.getByText('kubectl apply -f -').waitFor()
    await page.getByLabel('Why it is held').fill('the shop is busy')
    const dialog = page.getByRole('dialog')
    await page.getByRole('button', { name: 'Hold…' }).click()
    await dialog.getByRole('button', { name: 'Hold', exact: true }).click()
    await page.getByText('the shop is busy').waitFor()
    assert.equal((await service.call('GET', '/holds/uat-eu-02')).body.reason, 'the shop is busy')
    await page.getByRole('link', { name: 'Status', exact: true }).click()
    await page.getByText('the shop is busy').waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Release…' }).click()
    await dialog.getByRole('button', { name: 'Release', exact: true }).click()
    await page.getByText('It is not held').waitFor()
    assert.equal((await service.call('GET', '/holds/uat-eu-02')).status, 404)
    assert.deepEqual(faults, [])
  })

  test('that was deleted is brought back', async () => {
    await service.call('DELETE', '/clusters/qa-eu-05')
    const { page, faults } = await visit(service, '/clusters/qa-eu-05')
    await page.getByText('This cluster is deleted').waitFor()
    await page.getByRole('button', { name: 'Restore…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 new in the fleet').waitFor()
    await dialog.getByRole('button', { name: 'Restore', exact: true }).click()
    await page.getByText('This cluster is deleted').waitFor({ state: 'hidden' })
    assert.equal((await service.call('GET', '/clusters/qa-eu-05')).status, 200)
    assert.deepEqual(faults, [])
  })

  test('leads to its own Flux UI where a label names the host of one', async () => {
    const { page } = await visit(service, '/clusters/qa-eu-01')
    const link = page.getByRole('link', { name: 'Flux UI' })
    assert.equal(await link.getAttribute('href'), 'https://flux.qa-eu-01.example.com/')
    const other = await visit(service, '/clusters/dev-eu-00')
    await other.page.getByRole('region', { name: 'Components' }).waitFor()
    assert.equal(await other.page.getByRole('link', { name: 'Flux UI' }).count(), 0)
  })

  test('is accessible and fits in all of its views, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(
      service,
      '/clusters/dev-eu-00?view=inputs&endpoint=platform-components',
      'value of this cluster',
    )
    await assertGoodEverywhere(service, '/clusters/qa-eu-01?view=values', 'podinfo')
    await assertGoodEverywhere(service, '/clusters/qa-eu-01?view=compare&past=2', '/patches/message')
    await assertGoodEverywhere(service, '/clusters/qa-eu-01?view=setup', 'kubectl apply')
  })
})
