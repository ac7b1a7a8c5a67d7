// Catalog, access and system in a browser: definitions are read and changed with a preview, tokens are made and revoked.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { builtInTypes, READ_TOKEN, type TestService } from '../service.ts'
import { assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { consoleFleet, letFleetSpeak } from './console-fleet.ts'

const EXAMPLE = new URL('../../examples/network-policies', import.meta.url).pathname

describe('the catalog, access and the system in the console', { skip, timeout: 180_000 }, () => {
  let service: TestService

  before(async () => {
    service = await startConsole({ fleet: consoleFleet(), types: builtInTypes(EXAMPLE) })
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01'])
  })

  test('a definition says which versions are where, and is changed by what its form differs in', async () => {
    await service.call('PATCH', '/clusters/prod-eu-03/platform_components/traefik', {
      body: { oci_tag: 'v0.9.0' },
    })
    const { page, faults } = await visit(service, '/catalog')
    await page.getByRole('link', { name: 'traefik' }).click()
    const matrix = page.getByRole('region', { name: 'Versions by environment' })
    await matrix.getByRole('row', { name: /v0\.9\.0 1 1/ }).waitFor()
    await matrix.getByRole('row', { name: /v1\.0\.0 39/ }).waitFor()
    await page.getByRole('link', { name: 'prod-eu-03' }).waitFor()
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.getByLabel('oci_tag').fill('v1.1.0')
    await page.getByRole('button', { name: 'Preview' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('39').first().waitFor()
    await dialog.getByRole('button', { name: 'Save', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    const { body } = await service.call('GET', '/platform_components/traefik')
    assert.equal(body.oci_tag, 'v1.1.0')
    assert.equal(body.component_path, 'core/traefik/1.0.0')
    await page.getByRole('button', { name: 'Edit…' }).click()
    await page.getByLabel('oci_tag').fill('v1.2.0')
    await page.getByRole('combobox', { name: 'How clusters get it' }).click()
    await page.getByRole('option', { name: 'the strategy default' }).click()
    await page.getByRole('button', { name: 'Preview' }).click()
    await dialog.getByText(/waves; it takes at least/).waitFor()
    await dialog.getByRole('button', { name: 'Start the rollout' }).click()
    await page.getByRole('heading', { name: /^Rollout r\d+/ }).waitFor()
    assert.equal((await service.call('GET', '/platform_components/traefik')).body.oci_tag, 'v1.1.0')
    assert.deepEqual(faults, [])
  })

  test('a definition of a type of your own is made by a form that its file describes', async () => {
    const { page, faults } = await visit(service, '/catalog?type=network_policies')
    await page.getByRole('button', { name: /^New / }).click()
    await page.getByRole('textbox', { name: 'id', exact: true }).fill('deny-all')
    await page.getByLabel('target_namespace').fill('podinfo')
    await page.getByRole('button', { name: 'Preview' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click()
    await page.getByRole('heading', { name: 'deny-all' }).waitFor()
    const { body } = await service.call('GET', '/network_policies/deny-all')
    assert.equal(body.target_namespace, 'podinfo')
    assert.deepEqual(faults, [])
  })

  test('a token is made, its secret is shown once and works, and it is revoked', async () => {
    const { page, faults } = await visit(service, '/access')
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('ci-team-a')
    await page.getByRole('button', { name: 'Create' }).click()
    const notice = page.getByRole('alert').filter({ hasText: 'The secret of ci-team-a' })
    const secret = (await notice.locator('code').textContent()) ?? ''
    assert.equal((await service.call('GET', '/whoami', { token: secret })).body.name, 'ci-team-a')
    await page.reload()
    await page.getByRole('button', { name: 'Revoke ci-team-a' }).waitFor()
    assert.equal(await page.getByText(secret).count(), 0)
    await page.getByRole('button', { name: 'Revoke ci-team-a' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByText('No named tokens').waitFor()
    assert.equal((await service.call('GET', '/whoami', { token: secret })).status, 401)
    assert.deepEqual(faults, [])
  })

  test('whoever may only read is offered nothing else', async () => {
    const { page, faults } = await visit(service, '/catalog/platform_components/traefik', {
      token: READ_TOKEN,
    })
    await page.getByRole('heading', { name: 'traefik' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Edit…' }).count(), 0)
    await page.goto(`${service.url}/console/access`)
    await page.getByText('reads everything').first().waitFor()
    assert.equal(await page.getByRole('button', { name: 'New token' }).count(), 0)
    assert.deepEqual(faults, [])
  })

  test('the pages are accessible and fit, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, '/catalog', 'cert-manager')
    await assertGoodEverywhere(service, '/catalog/platform_components/podinfo', 'v1.0.0')
    await assertGoodEverywhere(service, '/access', 'reads everything')
    await assertGoodEverywhere(service, '/system', 'It follows its store.')
  })
})
