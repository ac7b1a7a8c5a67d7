// Journeys through the whole console: without a mouse, by the palette, on a read-only process, and while nothing is live.
import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { READ_TOKEN, type TestService } from '../service.ts'
import { assertAccessible, skip, startConsole, visit } from './browser.ts'
import { consoleFleet, letFleetSpeak } from './console-fleet.ts'

describe('journeys', { skip, timeout: 300_000 }, () => {
  let service: TestService

  before(async () => {
    service = await startConsole({ fleet: consoleFleet(40) })
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01', 'uat-eu-02'])
  })

  test('a keyboard alone leads from the login through a filter to a cluster', async () => {
    const { page, faults } = await visit(service, '/', { token: null })
    /** Goes on with Tab until what is named has the focus. */
    const tabTo = async (role: string, name: RegExp): Promise<void> => {
      const wanted = page.getByRole(role as 'link', { name }).first()
      await wanted.waitFor()
      for (let step = 0; step < 80; step++) {
        if (await wanted.evaluate((element) => element.matches(':focus'))) return
        await page.keyboard.press('Tab')
      }
      assert.fail(`Tab does not reach the ${role} ${name}`)
    }
    await tabTo('textbox', /Token/)
    await page.keyboard.type(READ_TOKEN)
    await page.keyboard.press('Enter')
    await tabTo('link', /^Fleet$/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await tabTo('button', /^qa/)
    await page.keyboard.press('Enter')
    await page.getByText('10 clusters').waitFor()
    await tabTo('link', /^qa-eu-01$/)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'qa-eu-01' }).waitFor()
    await page.getByText('1 of 10').waitFor()
    assert.deepEqual(faults, [])
  })

  test('the palette finds definitions, changes by number and actions', async () => {
    const { page, faults } = await visit(service, '/')
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    const find = async (text: string, found: RegExp): Promise<void> => {
      await page.keyboard.press('Control+k')
      await page.getByPlaceholder('Search clusters').fill(text)
      await page.getByRole('button', { name: found }).first().waitFor()
      await page.keyboard.press('ArrowDown')
      await page.keyboard.press('Enter')
    }
    await find('traefik', /traefik/)
    await page.waitForURL(/\/catalog\/platform_components\/traefik$/)
    await find('#1', /Change #1/)
    await page.waitForURL(/\/changes\/1$/)
    await find('dark col', /Dark colours/)
    await page.locator('html[data-mantine-color-scheme=dark]').waitFor()
    await find('log ou', /Log out/)
    await page.getByLabel('Token', { exact: true }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('a question mark shows the keys, but not while somebody types', async () => {
    const { page, faults } = await visit(service, '/fleet')
    await page.getByLabel('Part of the name').fill('a')
    await page.getByLabel('Part of the name').press('?')
    assert.equal(await page.getByRole('dialog', { name: 'Keys' }).count(), 0)
    await page.getByRole('heading', { name: 'Fleet' }).click()
    await page.keyboard.press('?')
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await keys.getByText('Rollouts', { exact: true }).waitFor()
    await assertAccessible(page)
    await page.keyboard.press('Escape')
    await keys.waitFor({ state: 'hidden' })
    assert.deepEqual(faults, [])
  })

  test('the start page tells admins which tokens end soon, and leads on to changes', async () => {
    const inDays = (days: number) => new Date(Date.now() + days * 24 * 3_600_000).toISOString()
    for (const [name, days] of [
      ['ends-soon', 3],
      ['ends-late', 90],
    ] as const) {
      const body = { name, role: 'viewer', expires_at: inDays(days) }
      assert.equal((await service.call('POST', '/tokens', { body })).status, 201)
    }
    const { page, faults } = await visit(service, '/')
    await page.getByRole('link', { name: 'ends-soon' }).waitFor()
    assert.equal(await page.getByRole('link', { name: 'ends-late' }).count(), 0)
    await page.getByRole('link', { name: '#1', exact: true }).click()
    await page.waitForURL(/\/changes\/1$/)
    const reader = await visit(service, '/', { token: READ_TOKEN })
    await reader.page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    assert.equal(await reader.page.getByRole('link', { name: 'ends-soon' }).count(), 0)
    assert.deepEqual([...faults, ...reader.faults], [])
  })

  test('a read-only process offers what it has, and no writing', async () => {
    const readOnly = await startConsole({ mode: 'read-only', fleet: consoleFleet(12) })
    const { page, faults } = await visit(readOnly, '/')
    await page.getByRole('heading', { name: 'Needs attention' }).waitFor()
    const pages = page.getByRole('navigation', { name: 'Pages' })
    assert.equal(await pages.getByRole('link', { name: 'Changes' }).count(), 0)
    assert.equal(await page.getByRole('heading', { name: 'Last changes' }).count(), 0)
    await pages.getByRole('link', { name: 'Fleet' }).click()
    await page.getByText('12 clusters').waitFor()
    await page.getByRole('button', { name: /^qa/ }).click()
    await page.getByText('3 clusters').waitFor()
    assert.equal(await page.getByRole('button', { name: /^Change all/ }).count(), 0)
    await page.getByRole('link', { name: 'qa-eu-01' }).click()
    await page.getByRole('heading', { name: 'Components' }).waitFor()
    assert.equal(await page.getByRole('button', { name: 'Actions on qa-eu-01' }).count(), 0)
    assert.equal(await page.getByRole('alert').count(), 0)
    assert.deepEqual(faults, [])
  })

  test('without the stream it says that it is not live, reads in turns, and is live again by itself', async () => {
    const { page } = await visit(service, '/clusters/prod-eu-07?view=values', {
      token: null,
      inOwnTab: true,
    })
    await page.clock.install()
    let isDown = true
    await page.route('**/watch?*', (route) => (isDown ? route.abort() : route.continue()))
    await page.getByLabel('Token', { exact: true }).fill(READ_TOKEN)
    await page.keyboard.press('Enter')
    await page.getByText('not live', { exact: true }).waitFor()
    await service.call('PATCH', '/clusters/prod-eu-07', { body: { vm_image: 'written-meanwhile' } })
    await page.clock.runFor(21_000)
    await page.getByText('written-meanwhile').first().waitFor()
    isDown = false
    await page.clock.runFor(31_000)
    await page.getByText('live', { exact: true }).waitFor()
  })
})
