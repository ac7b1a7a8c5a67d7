// The console as somebody meets it: how it is served, the login, the frame around the pages, and the start page.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { READ_TOKEN, startService, type TestService, WRITE_TOKEN } from '../service.ts'
import { assertGoodEverywhere, skip, startConsole, visit } from './browser.ts'
import { BUILT } from './built.ts'
import { ATTACK, consoleFleet, letFleetSpeak } from './console-fleet.ts'

const MAX_FIRST_LOAD = 250_000

describe('the console', { skip, timeout: 300_000 }, () => {
  let service: TestService

  before(async () => {
    service = await startConsole({ fleet: consoleFleet() })
    await letFleetSpeak(service, ['dev-eu-00', 'qa-eu-01', 'uat-eu-02'])
  })

  test('is one page for every path, with a nonce of its own each time, and nothing inline may run', async () => {
    const one = await service.call('GET', '/console', { token: null })
    const deep = await service.call('GET', '/console/clusters/a.b/c?x=1', { token: null })
    for (const { status, headers, text } of [one, deep]) {
      assert.equal(status, 200)
      const policy = String(headers['content-security-policy'])
      assert.doesNotMatch(policy, /unsafe/)
      const [, nonce = ''] = /'nonce-([\w-]{22})'/.exec(policy) ?? []
      assert.ok(text.includes(`nonce="${nonce}"`) && !text.includes('__CSP_NONCE__'))
      assert.equal(headers['cache-control'], 'no-store')
    }
    assert.notEqual(one.headers['content-security-policy'], deep.headers['content-security-policy'])
  })

  test('sends its assets compressed and for ever, and what is none is 404', async () => {
    const page = await service.call('GET', '/console', { token: null })
    const [, script = ''] = /src="(\/console\/assets\/[^"]+\.js)"/.exec(page.text) ?? []
    for (const [accepted, sent] of [
      ['br, gzip', 'br'],
      ['gzip', 'gzip'],
      ['br;q=0, gzip', 'gzip'],
      ['identity', undefined],
    ] as const) {
      const asset = await service.call('GET', script, {
        token: null,
        headers: { 'accept-encoding': accepted },
      })
      assert.equal(asset.status, 200)
      assert.equal(asset.headers['content-encoding'], sent)
      assert.match(String(asset.headers['cache-control']), /immutable/)
    }
    for (const path of ['/console/assets/none.js', '/console/assets/..%2findex.html'])
      assert.equal((await service.call('GET', path, { token: null })).status, 404)
    assert.equal((await service.call('POST', '/console/fleet', { token: null })).status, 405)
  })

  test('its settings hold nothing secret, and name the issuer only where there is one', async (t) => {
    const { body } = await service.call('GET', '/console/settings.json', { token: null })
    assert.deepEqual([body.mode, 'login' in body], ['crud', false])
    const login = { issuer: 'https://id.example.com/realm', clientId: 'fleet' }
    const other = await startService({ login, console: { page: '<html></html>', assets: new Map() } })
    t.after(() => other.stop())
    const told = await other.call('GET', '/console/settings.json', { token: null })
    assert.deepEqual(told.body.login, { issuer: login.issuer, client_id: 'fleet' })
    const page = await other.call('GET', '/console', { token: null })
    assert.match(
      String(page.headers['content-security-policy']),
      /connect-src 'self' https:\/\/id\.example\.com;/,
    )
  })

  test('is not there where it is switched off, and says so where it was not built', async (t) => {
    const off = await startService()
    t.after(() => off.stop())
    assert.equal((await off.call('GET', '/console')).status, 404)
    const unbuilt = await startService({ console: { page: undefined, assets: new Map() } })
    t.after(() => unbuilt.stop())
    const { status, body } = await unbuilt.call('GET', '/console')
    assert.equal(status, 404)
    assert.match(body.message, /npm run build:console/)
  })

  test('a first load has at most 250 kB of JavaScript', async () => {
    const scripts = new Set<string>()
    const { page } = await visit(service, '/', { token: null })
    await page.getByLabel('Token', { exact: true }).waitFor()
    const { page: home } = await visit(service, '/fleet')
    home.on('request', (request) => scripts.add(request.url()))
    await home.reload()
    await home.getByRole('region', { name: 'Clusters' }).waitFor()
    const names = readdirSync(join(BUILT, 'assets'))
    const loaded = [...scripts].map((url) => url.split('/').at(-1) ?? '').filter((name) => /\.js$/.test(name))
    assert.ok(loaded.length > 2 && loaded.every((name) => names.includes(name)), loaded.join())
    const bytes = loaded.map((name) => gzipSync(readFileSync(join(BUILT, 'assets', name))).length)
    const sum = bytes.reduce((all, each) => all + each, 0)
    assert.ok(sum <= MAX_FIRST_LOAD, `${sum} bytes`)
  })

  test('logs in with a token, keeps it for the tab alone unless asked, and logs out', async () => {
    const { page, faults } = await visit(service, '/fleet?contact=never', { token: null })
    const token = page.getByLabel('Token', { exact: true })
    await token.fill('wrong-token')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').getByText('401').or(page.getByText('That did not work')).first().waitFor()
    await token.fill(READ_TOKEN)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    assert.match(page.url(), /contact=never/)
    assert.equal(
      await page.evaluate(() => localStorage.length - Number('mantine-color-scheme-value' in localStorage)),
      0,
    )
    assert.ok(!page.url().includes(READ_TOKEN))
    await page.getByRole('button', { name: 'You and your settings' }).click()
    await page.getByRole('menuitem', { name: 'Log out' }).click()
    await token.waitFor()
    assert.equal(await page.evaluate(() => sessionStorage.getItem('flux-resourceset.token')), null)
    assert.deepEqual(faults, [])
  })

  test('what the token may not do is not offered', async () => {
    const reader = await visit(service, '/clusters/dev-eu-00', { token: READ_TOKEN })
    await reader.page.getByRole('heading', { name: 'Components' }).waitFor()
    assert.equal(await reader.page.getByRole('button', { name: 'Actions on dev-eu-00' }).count(), 0)
    const writer = await visit(service, '/clusters/dev-eu-00', { token: WRITE_TOKEN })
    await writer.page.getByRole('button', { name: 'Actions on dev-eu-00' }).waitFor()
  })

  test('the palette and the keys lead to clusters and pages', async () => {
    const { page, faults } = await visit(service, '/')
    await page.getByRole('heading', { name: 'Home' }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('f')
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    await page.keyboard.press('Control+k')
    await page.getByPlaceholder('Search clusters').fill('uat-eu-02')
    await page.getByRole('button', { name: 'uat-eu-02' }).or(page.getByText('uat-eu-02')).last().waitFor()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'uat-eu-02' }).waitFor()
    assert.deepEqual(faults, [])
  })

  test('the start page says who needs somebody and why, and shows what clusters sent as text', async () => {
    const { page, faults } = await visit(service, '/')
    await page.getByText(`InstallFailed: helm install failed: ${ATTACK}`).waitFor()
    await page.getByRole('link', { name: '37 never' }).click()
    await page.getByText('37 clusters').waitFor()
    assert.deepEqual(faults, [])
  })

  test('the start page is accessible and fits, wide and narrow, light and dark', async () => {
    await assertGoodEverywhere(service, '/', 'Needs attention')
  })
})
