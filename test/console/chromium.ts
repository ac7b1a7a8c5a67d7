// Where Chromium is, for tests and benchmarks of the console.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

/** The only place where it is looked for, if it is set. */
const { CHROMIUM } = process.env
const PLACES =
  CHROMIUM === undefined
    ? ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
    : [CHROMIUM]

/** Installed where it is missing and may be: on Debian, by root. Undefined where it cannot be had. */
function findChromium(): string | undefined {
  const found = (): string | undefined => PLACES.find((path) => existsSync(path))
  const mayInstall = CHROMIUM === undefined && process.getuid?.() === 0 && existsSync('/usr/bin/apt-get')
  if (found() || !mayInstall) return found()
  try {
    for (const args of [['update'], ['install', '-y', '--no-install-recommends', 'chromium']])
      execFileSync('apt-get', args, { stdio: 'ignore', timeout: 300_000 })
  } catch {
    return undefined
  }
  return found()
}

export const executablePath = findChromium()
