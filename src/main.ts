#!/usr/bin/env -S node --max-semi-space-size=4 --expose-gc
// The process: runs the command, or the service, and sets the exit code.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { HELP, runStoreCommand } from './admin/store-commands.ts'
import { runTokenCommand } from './admin/store-tokens.ts'
import { runTransferCommand } from './admin/transfer-commands.ts'
import { UsageProblem } from './base/usage-problem.ts'
import { scaffoldTemplate } from './bootstrap/scaffold-template.ts'
import { parseFolders } from './config/config.ts'
import type { RegisteredTypes } from './registry/build-types.ts'
import { loadTypes } from './registry/load-types.ts'
import { StoreError } from './store/store.ts'

const BUILT_IN_RESOURCES = fileURLToPath(new URL('../resources', import.meta.url))

function readVersion(): string {
  return JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')).version
}

function readTypes(folders: readonly string[]): RegisteredTypes {
  const loaded = loadTypes([BUILT_IN_RESOURCES, ...folders])
  if (!loaded.ok) throw new UsageProblem(...loaded.problems)
  return loaded.types
}

/** The type may be named as in routes, in poll URLs or on the command line. */
function printTemplate([given, ...more]: readonly string[]): void {
  const types = readTypes(parseFolders(process.env.RESOURCES_DIR)).delivered
  const known = types.map(({ name }) => name).join(', ')
  if (given === undefined || more.length > 0)
    throw new UsageProblem(`scaffold-template needs one type: known are ${known}`)
  const type = types.find(({ name, noun, delivery }) => [name, noun, delivery.endpoint].includes(given))
  if (!type) throw new UsageProblem(`there is no type "${given}" that reaches clusters: known are ${known}`)
  process.stdout.write(scaffoldTemplate(type))
}

/** Without a command the service starts. */
async function run([command, ...args]: readonly string[]): Promise<void> {
  if (command === undefined) {
    // Imported only here: commands start much faster without the modules of the service.
    const { serve } = await import('./serve.ts')
    return serve({ env: process.env, version: readVersion(), readTypes })
  }
  if (command === 'help' || [command, ...args].some((arg) => arg === '--help' || arg === '-h'))
    return console.log(HELP)
  if (command === '--version') return console.log(readVersion())
  if (command === 'scaffold-template') return printTemplate(args)
  if (command === 'token') {
    const types = readTypes(parseFolders(process.env.RESOURCES_DIR))
    return runTokenCommand(args, process.env, types, (line) => console.log(line))
  }
  const code =
    (await runStoreCommand(command, args, process.env, (line) => console.log(line))) ??
    (await runTransferCommand(command, args, {
      env: process.env,
      types: () => readTypes(parseFolders(process.env.RESOURCES_DIR)),
      now: () => new Date(),
      stdout: process.stdout,
      print: (line) => console.log(line),
      tell: (line) => console.error(line),
    }))
  if (code === undefined) throw new UsageProblem(`there is no command "${command}": see --help`)
  process.exitCode = code
}

// A reader such as `head` may close the pipe early, which is no failure. Output that must be whole adds a listener of its
// own, and then the write reports the failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' && process.stdout.listenerCount('error') === 1) process.exit()
})

run(process.argv.slice(2)).catch((error: unknown) => {
  const problems =
    error instanceof UsageProblem ? error.problems : error instanceof StoreError ? [error.message] : undefined
  if (problems) for (const problem of problems) console.error(`flux-resourceset: ${problem}`)
  else console.error('flux-resourceset: cannot start:', isListenError(error) ? error.message : error)
  process.exit(problems ? 2 : 1)
})

function isListenError(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error
}
