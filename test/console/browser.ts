// A real Chromium for tests of the console, a service with a fleet to look at, and checks that every page has to pass.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach } from 'node:test'
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { loadConsole } from '../../src/http/console/console-files.ts'
import { buildConsole } from '../../tools/console/build-console.ts'
import { type ServiceOptions, startService, type TestService, WRITE_TOKEN } from '../service.ts'
import { BUILT } from './built.ts'
import { executablePath } from './chromium.ts'

/** For `describe`: why the tests of a page are skipped, if they are. */
export const skip =
  executablePath === undefined && 'needs Chromium: install the package chromium, or name one in CHROMIUM'

const WIDE = { width: 1280, height: 800 }
const NARROW = { width: 390, height: 844 }
/** What can be right on a wide screen and wrong on a narrow one, beside what is too wide. */
const NARROW_RULES = ['target-size', 'button-name', 'link-name', 'label', 'scrollable-region-focusable']
/** All rules of axe once: a scheme changes colours alone, and a width what finds room. It ends as a tab begins. */
const LOOKS = [
  { screen: NARROW, scheme: 'light', rules: [] },
  { screen: NARROW, scheme: 'dark', rules: [...NARROW_RULES, 'color-contrast'] },
  { screen: WIDE, scheme: 'dark', rules: ['color-contrast'] },
  { screen: WIDE, scheme: 'light', rules: undefined },
] as const

interface Visit {
  readonly page: Page
  /** What the page did that no page may: refused content, exceptions, requests to other hosts. */
  readonly faults: readonly string[]
}

interface VisitOptions {
  /** null stays at the login. */
  readonly token?: string | null
  /** For tests that change the tab itself, such as its clock: nobody has it afterwards. */
  readonly inOwnTab?: boolean
}

interface Tab {
  readonly service: TestService
  readonly page: Page
  readonly faults: string[]
  readonly isKept: boolean
}

const KEPT_TOKEN = 'flux-resourceset.token'
let browser: Promise<Browser> | undefined
const services: TestService[] = []
/** A page in a tab that is there already costs a third of one in a new tab, so the next test goes on in the last one's. */
let idle: Tab | undefined
const inUse: Tab[] = []

afterEach(leaveTabs)

async function leaveTabs(): Promise<void> {
  for (const tab of inUse.splice(0)) {
    const left = tab.isKept ? idle : tab
    if (tab.isKept) idle = tab
    await left?.page.context().close()
  }
}

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

/** Opens a page of the console, logged in, in a browser that remembers nothing else. */
export async function visit(service: TestService, path: string, options: VisitOptions = {}): Promise<Visit> {
  const { token = WRITE_TOKEN, inOwnTab = false } = options
  const known = !inOwnTab && idle?.service === service ? idle : undefined
  const tab = known ?? (await openTab(service, token, !inOwnTab))
  inUse.push(tab)
  const { page, faults } = tab
  if (known) {
    idle = undefined
    faults.length = 0
    await page.evaluate(forgetAllBut, [KEPT_TOKEN, token])
  }
  await page.goto(`${service.url}/console${path}`)
  return { page, faults }
}

async function openTab(service: TestService, token: string | null, isKept: boolean): Promise<Tab> {
  browser ??= chromium.launch({
    executablePath: executablePath as string,
    args: ['--no-sandbox', '--disable-gpu', '--disable-software-rasterizer'],
  })
  const context = await (await browser).newContext({
    viewport: WIDE,
    reducedMotion: 'reduce',
    permissions: ['clipboard-read', 'clipboard-write'],
  })
  const page = await context.newPage()
  const tab = { service, page, faults: watchFaults(page, service.url), isKept }
  // Storage belongs to an origin, so there is none before the first page.
  await context.addInitScript(
    ([name, kept]) => {
      if (kept && !sessionStorage.getItem('test-began')) sessionStorage.setItem(name as string, kept)
      sessionStorage.setItem('test-began', 'yes')
    },
    [KEPT_TOKEN, token],
  )
  return tab
}

/** Runs in the page. */
function forgetAllBut([name, token]: readonly (string | null)[]): void {
  localStorage.clear()
  sessionStorage.clear()
  sessionStorage.setItem('test-began', 'yes')
  if (token) sessionStorage.setItem(name as string, token)
}

function watchFaults(page: Page, url: string): string[] {
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

const WCAG = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']

/** WCAG 2.2 AA, or only some of its rules, by axe: https://github.com/dequelabs/axe-core */
export async function assertAccessible(page: Page, rules?: readonly string[]): Promise<void> {
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source)
  const runOnly = rules ? { type: 'rule', values: rules } : { type: 'tag', values: WCAG }
  const options = JSON.stringify({ runOnly, resultTypes: ['violations'] })
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${options})`)
  const found = violations.map(
    ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
  )
  assert.deepEqual(found, [], page.url())
}

/** What holds of every page: at both widths and in both schemes it is accessible, fits, and keeps the policy. */
export async function assertGoodEverywhere(service: TestService, path: string, ready: string): Promise<void> {
  const { page, faults } = await visit(service, path)
  for (const { screen, scheme, rules } of LOOKS) {
    await page.setViewportSize(screen)
    await page.emulateMedia({ colorScheme: scheme })
    await page.locator(`html[data-mantine-color-scheme=${scheme}]`).waitFor()
    await page.getByText(ready).first().waitFor()
    // Colours that are on their way from one scheme to the other have any contrast.
    await page.evaluate(
      'Promise.allSettled(document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished))',
    )
    if (rules?.length !== 0) await assertAccessible(page, rules)
    const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    assert.ok(overflow <= 0, `${path} is ${overflow} px too wide at ${screen.width}`)
    await keepPicture(page, `${path}-${screen.width}-${scheme}`)
  }
  assert.deepEqual(faults, [])
  await leaveTabs()
}

/** Where `CONSOLE_PICTURES` names a folder, pictures are kept there. */
async function keepPicture(page: Page, name: string): Promise<void> {
  const folder = process.env.CONSOLE_PICTURES
  if (!folder) return
  await page.screenshot({
    path: join(folder, `${name.replaceAll(/[^\w-]+/g, '_').replace(/^_-?/, '')}.png`),
  })
}
