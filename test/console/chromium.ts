// Where Chromium is, for tests and benchmarks of the console.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'

const PLACES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
]

/** Installed where it is missing and may be: on Debian, by root. Undefined where it cannot be had. */
function findChromium(): string | undefined {
  const found = (): string | undefined => PLACES.find((path) => path && existsSync(path))
  if (found() || process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return found()
  try {
    execFileSync('apt-get', ['install', '-y', '--no-install-recommends', 'chromium'], {
      stdio: 'ignore',
      timeout: 300_000,
    })
  } catch {
    return undefined
  }
  return found()
}

export const executablePath = findChromium()
