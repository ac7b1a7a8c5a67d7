// Changes in the console: a timeline with filters in the URL, what one did and how far it has come, and the way back.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { READ_TOKEN, type TestService } from '../service.ts'
import { assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'

describe('changes', { skip, timeout: 300_000 }, () => {
  let service: TestService
  let upgrade = 0

  before(async () => {
    service = await startConsole({ fleet: consoleFleet() })
    const write = async (method: string, path: string, body: object, message: string) => {
      const headers = { 'x-change-message': message }
      const answer = await service.call(method, path, { body: body as never, headers })
      assert.ok(answer.status < 300, answer.text)
      return Number(answer.headers['x-revision'])
    }
    for (let i = 0; i < 55; i++) await write('PATCH', '/clusters/prod-eu-03', { node_count: i }, `nodes ${i}`)
    await write('PATCH', '/clusters/qa-eu-01', { vm_image: ATTACK }, ATTACK)
    upgrade = await write('PATCH', '/platform_components/podinfo', { oci_tag: 'v2.0.0' }, 'podinfo 2')
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01'])
  })

  test('are filtered by the URL, page by page, and a wrong filter is told in the words of the service', async () => {
    const { page, faults } = await visit(service, '/changes')
    await page.getByText('podinfo 2').waitFor()
    assert.equal(await page.getByText('nodes 2', { exact: true }).count(), 0)
    await page.getByRole('link', { name: 'Older' }).click()
    await page.getByText('nodes 2', { exact: true }).waitFor()
    assert.match(page.url(), /before=/)
    await page.getByLabel('Text').fill('nodes 5')
    await page.getByLabel('Text').press('Enter')
    await page.getByText('nodes 54', { exact: true }).waitFor()
    assert.match(page.url(), /q=nodes/)
    assert.doesNotMatch(page.url(), /before=/)
    assert.equal(await page.getByText('podinfo 2').count(), 0)
    await page.getByLabel('Since').fill('yesterday')
    await page.getByLabel('Since').press('Enter')
    await page.getByText('must be an RFC 3339 time').first().waitFor()
    assert.deepEqual(faults, [])
  })

  test('one shows its fields before and after, which clusters it reached, and which it did not yet', async () => {
    const { page, faults } = await visit(service, `/changes/${upgrade}`)
    await page.getByText('40 clusters received something different').waitFor()
    await page.getByText('/oci_tag', { exact: true }).waitFor()
    await page.getByRole('img', { name: /Share of clusters over time/ }).waitFor()
    const { body } = await service.call('GET', `/revisions/${upgrade}/propagation`)
    assert.equal(body.affected, 40)
    await page.getByText(`${body.served} of 40`).first().waitFor()
    await page.getByRole('link', { name: body.pending[0].cluster }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('what somebody typed is text', async () => {
    const { page, faults } = await visit(service, `/changes/${upgrade - 1}`)
    await page.getByText(ATTACK, { exact: true }).first().waitFor()
    assert.deepEqual(faults, [])
  })

  test('one is taken back after a preview, and a reader is not offered that', async () => {
    const { page, faults } = await visit(service, `/changes/${upgrade}`)
    await page.getByRole('button', { name: `Actions on change ${upgrade}` }).click()
    await page.getByRole('menuitem', { name: 'Revert' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('40 clusters receive something different').waitFor()
    await dialog.getByLabel('Why').fill('it broke the shop')
    await dialog.getByRole('button', { name: 'Revert', exact: true }).click()
    await page.getByRole('heading', { name: `Change #${upgrade + 1}` }).waitFor()
    await page.getByText('it broke the shop').waitFor()
    assert.equal((await service.call('GET', '/platform_components/podinfo')).body.oci_tag, 'v1.0.0')
    const reader = await visit(service, `/changes/${upgrade}`, { token: READ_TOKEN })
    await reader.page.getByText('/oci_tag', { exact: true }).waitFor()
    assert.equal(await reader.page.getByRole('button', { name: /^Actions on change/ }).count(), 0)
    assert.deepEqual(faults, [])
  })

  test('the log is verified when somebody asks', async () => {
    const { page, faults } = await visit(service, '/changes')
    await page.getByRole('button', { name: 'Verify the log' }).click()
    await page.getByRole('region', { name: 'Verification' }).getByText('whole').waitFor()
    const { body } = await service.call('GET', '/revisions/verify')
    await page.getByText(body.hash).waitFor()
    assert.deepEqual(faults, [])
  })

  test('are accessible and fit, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, '/changes', 'podinfo 2')
    await assertGoodEverywhere(service, `/changes/${upgrade}`, 'have not applied it')
  })
})
