// `data/demo.env`: what a shell needs to work on the demo fleet, so that the commands of the pages run as they are written.
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')
/** The programs of a checkout, by the names that the package gives them. */
const PROGRAMS = join(ROOT, '.tools/programs')

export interface DemoFleet {
  readonly url: string
  readonly readToken: string
  readonly writeToken: string
  readonly databaseUrl: string
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}

/** From any folder: a relative path is one of the folder that the demo was started in. */
function fromAnywhere(databaseUrl: string): string {
  return databaseUrl.replace(/^sqlite:\/\/([^?]*)/, (_, path: string) => `sqlite://${resolve(path)}`)
}

function linkPrograms(): void {
  mkdirSync(PROGRAMS, { recursive: true })
  for (const [name, file] of [
    ['flux-resourceset', 'flux-resourceset.js'],
    ['flux-resourceset-cli', 'flux-resourceset-cli.cjs'],
  ] as const) {
    try {
      symlinkSync(join(ROOT, 'bin', file), join(PROGRAMS, name))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

function demoEnvironment({ url, readToken, writeToken, databaseUrl }: DemoFleet): string {
  const variables = {
    api: url,
    read: `Authorization: Bearer ${readToken}`,
    write: `Authorization: Bearer ${writeToken}`,
    json: 'Content-Type: application/json',
    FLUX_API_URL: url,
    FLUX_API_TOKEN: readToken,
    FLUX_API_WRITE_TOKEN: writeToken,
    DATABASE_URL: fromAnywhere(databaseUrl),
  }
  const lines = Object.entries(variables).map(([name, value]) => `export ${name}=${quote(value)}`)
  const path = [PROGRAMS, join(ROOT, 'node_modules/.bin')].map(quote).join(':')
  return [
    '# How to reach the demo fleet. `make run` writes this file; read it with: source data/demo.env',
    ...lines,
    '# flux-resourceset, flux-resourceset-cli, and the Node that they run on',
    `export PATH=${path}:"$PATH"`,
    '',
  ].join('\n')
}

/** Only its owner may read it: the tokens are in it. */
export function writeDemoEnvironment(file: string, fleet: DemoFleet): void {
  linkPrograms()
  rmSync(file, { force: true })
  writeFileSync(file, demoEnvironment(fleet), { mode: 0o600 })
}
