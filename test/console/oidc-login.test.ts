// Logging in to the console at an OIDC issuer: PKCE, back to where one was, and nothing accepted that was not asked for.
import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { describe, type TestContext, test } from 'node:test'
import type { Page } from 'playwright-core'
import { createOidc } from '../../src/http/auth/oidc.ts'
import { type OidcIssuer, startOidcIssuer } from '../oidc-issuer.ts'
import { skip, startConsole, visit } from './browser.ts'

const CLIENT = 'fleet-console'
const JSON_HEADERS = { 'content-type': 'application/json', 'access-control-allow-origin': '*' }

/** What a browser asks of an issuer, answered with tokens that the service accepts. */
async function answerForIssuer(
  page: Page,
  issuer: OidcIssuer,
  stateOf = (state: string) => state,
): Promise<void> {
  let asked = new URLSearchParams()
  await page.route(`${issuer.url}/.well-known/openid-configuration`, (route) => {
    const endpoints = {
      id_token_signing_alg_values_supported: ['ES256'],

      authorization_endpoint: `${issuer.url}/authorize`,
      token_endpoint: `${issuer.url}/token`,
    }
    return route.fulfill({
      headers: JSON_HEADERS,
      body: JSON.stringify({ issuer: issuer.url, ...endpoints }),
    })
  })
  await page.route(`${issuer.url}/authorize?*`, (route) => {
    asked = new URL(route.request().url()).searchParams
    const back = new URL(asked.get('redirect_uri') ?? '')
    back.search = new URLSearchParams({ code: 'a-code', state: stateOf(asked.get('state') ?? '') }).toString()
    return route.fulfill({ status: 302, headers: { location: back.href } })
  })
  await page.route(`${issuer.url}/token`, async (route) => {
    const form = new URLSearchParams(route.request().postData() ?? '')
    const challenge = hash('sha256', form.get('code_verifier') ?? '', 'base64url')
    assert.equal(challenge, asked.get('code_challenge'))
    const id_token = await issuer.mint({ groups: ['everyone'], nonce: asked.get('nonce') })
    const body = JSON.stringify({ access_token: 'another', token_type: 'Bearer', id_token })
    return route.fulfill({ headers: JSON_HEADERS, body })
  })
}

async function startWithIssuer(t: TestContext) {
  const issuer = await startOidcIssuer(t, { audience: CLIENT })
  const names = { audience: CLIENT, roleClaim: 'groups', usernameClaim: 'email' }
  const oidc = createOidc({ issuer: issuer.url, ...names, now: () => new Date() })
  const rules = () => ({ oidc: [{ claim: 'everyone', role: 'viewer' }], certificates: [] }) as const
  const login = { issuer: issuer.url, clientId: CLIENT }
  return { issuer, service: await startConsole({ login, auth: { oidc, rules } }) }
}

describe('a login at an issuer', { skip, timeout: 60_000 }, () => {
  test('comes back to where it began, as who one is there', async (t) => {
    const { issuer, service } = await startWithIssuer(t)
    const { page, faults } = await visit(service, '/fleet?environment=dev', { token: null, inOwnTab: true })
    await answerForIssuer(page, issuer)
    await page.getByRole('button', { name: /^Log in at/ }).click()
    await page.getByRole('heading', { name: 'Fleet' }).waitFor()
    assert.equal(page.url(), `${service.url}/console/fleet?environment=dev`)
    assert.deepEqual(
      faults.filter((fault) => !fault.startsWith(`left the host: ${issuer.url}`)),
      [],
    )
  })

  test('with a state that was not asked for is refused', async (t) => {
    const { issuer, service } = await startWithIssuer(t)
    const { page } = await visit(service, '/', { token: null, inOwnTab: true })
    await answerForIssuer(page, issuer, () => 'of-somebody-else')
    await page.getByRole('button', { name: /^Log in at/ }).click()
    await page.getByRole('alert').getByText('That did not work').waitFor()
    assert.equal(await page.evaluate(() => sessionStorage.getItem('flux-resourceset.token')), null)
  })
})
