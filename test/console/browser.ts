// A real Chromium for tests of the console, a service with a fleet to look at, and checks that every page has to pass.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after } from 'node:test'
import { AxeBuilder } from '@axe-core/playwright'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { loadConsole } from '../../src/http/console/console-files.ts'
import { buildConsole } from '../../tools/console/build-console.ts'
import { type ServiceOptions, startService, type TestService, WRITE_TOKEN } from '../service.ts'
import { executablePath } from './chromium.ts'

/** Not `dist`, which the tests of the package make anew. */
export const BUILT = join(import.meta.dirname, '../../node_modules/.cache/console')
/** For `describe`: why the tests of a page are skipped, if they are. */
export const skip =
  executablePath === undefined && 'needs Chromium: install the package chromium, or name one in CHROMIUM'

const SCREENS = [
  { width: 1280, height: 800 },
  { width: 390, height: 844 },
] as const
const SCHEMES = ['light', 'dark'] as const

interface Visit {
  readonly page: Page
  /** What the page did that no page may: refused content, exceptions, requests to other hosts. */
  readonly faults: readonly string[]
}

interface VisitOptions {
  /** null stays at the login. */
  readonly token?: string | null
}

let browser: Promise<Browser> | undefined
const services: TestService[] = []

after(async () => {
  await (await browser)?.close()
  for (const service of services) await service.stop()
})

/** A service that serves the console, stopped after the tests of the file. */
export async function startConsole(options: ServiceOptions = {}): Promise<TestService> {
  mkdirSync(join(BUILT, '..'), { recursive: true })
  await buildConsole(BUILT)
  const service = await startService({ ...options, console: loadConsole(BUILT) })
  services.push(service)
  return service
}

/** Opens a page of the console in a context of its own, logged in. */
export async function visit(service: TestService, path: string, options: VisitOptions = {}): Promise<Visit> {
  const { token = WRITE_TOKEN } = options
  browser ??= chromium.launch({
    executablePath: executablePath as string,
    args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'],
  })
  const context = await (await browser).newContext({
    viewport: SCREENS[0],
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  const faults = watchFaults(page, service.url)
  if (token !== null) await remember(context, token)
  await page.goto(`${service.url}/console${path}`)
  return { page, faults }
}

/** As the login does. */
async function remember(context: BrowserContext, token: string): Promise<void> {
  await context.addInitScript((kept) => {
    if (!sessionStorage.getItem('test-began')) sessionStorage.setItem('flux-resourceset.token', kept)
    sessionStorage.setItem('test-began', 'yes')
  }, token)
}

function watchFaults(page: Page, url: string): readonly string[] {
  const faults: string[] = []
  page.on('pageerror', (error) => faults.push(`exception: ${error.message}`))
  page.on('console', (message) => {
    const text = message.text()
    if (/Content Security Policy|Warning:|not a valid|unique "key"/i.test(text)) faults.push(text)
  })
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
      faults.push(`left the host: ${request.url()}`)
  })
  page.on('dialog', (dialog) => {
    faults.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  return faults
}

/** What can be right on a wide screen and wrong on a narrow one, beside what is too wide. */
const NARROW_RULES = ['target-size', 'button-name', 'link-name', 'label', 'scrollable-region-focusable']

/** WCAG 2.2 AA, or only some of its rules, by axe: https://github.com/dequelabs/axe-core */
export async function assertAccessible(page: Page, rules?: string[]): Promise<void> {
  const axe = new AxeBuilder({ page })
  if (rules) axe.withRules(rules)
  else axe.withTags(['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'])
  const { violations } = await axe.analyze()
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
  )
  assert.deepEqual(found, [], page.url())
}

/** What holds of every page: at both widths and in both schemes it is accessible, fits, and keeps the policy. */
export async function assertGoodEverywhere(service: TestService, path: string, ready: string): Promise<void> {
  const { page, faults } = await visit(service, path)
  for (const screen of SCREENS)
    for (const scheme of SCHEMES) {
      await page.setViewportSize(screen)
      await page.emulateMedia({ colorScheme: scheme })
      await page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor()
      await page.getByText(ready).first().waitFor()
      // Colours that are on their way from one scheme to the other have any contrast.
      await page.evaluate(
        'Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished))',
      )
      await assertAccessible(page, rulesFor(screen, scheme))
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
      assert.ok(overflow <= 0, `${path} is ${overflow} px too wide at ${screen.width}`)
      await keepPicture(page, `${path}-${screen.width}-${scheme}`)
    }
  assert.deepEqual(faults, [])
  await page.context().close()
}

/** All of them once: a scheme changes colours alone, and a width what finds room. */
function rulesFor(screen: (typeof SCREENS)[number], scheme: (typeof SCHEMES)[number]): string[] | undefined {
  if (scheme === 'dark') return ['color-contrast']
  return screen === SCREENS[0] ? undefined : NARROW_RULES
}

/** Where `CONSOLE_PICTURES` names a folder, pictures are kept there. */
async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env.CONSOLE_PICTURES
  if (!folder) return
  await page.screenshot({
    path: join(folder, `${name.replaceAll(/[^\w-]+/g, '_').replace(/^_-?/, '')}.png`),
  })
}
