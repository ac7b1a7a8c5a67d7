#!/usr/bin/env node
// The command line as a process: arguments and environment in, an exit code out.
import { readFileSync } from 'node:fs'

// Whoever reads our output may have seen enough, like head.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  process.exit(error.code === 'EPIPE' ? 0 : 1)
})

async function main(argv: readonly string[]): Promise<void> {
  const root = `${import.meta.dirname}/..`
  const { version } = JSON.parse(readFileSync(`${root}/package.json`, 'utf8'))
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    process.stdout.write(`${version}\n`)
    return
  }
  // Loaded only now: the version alone needs none of it.
  const { runProgram } = await import('./cli/program.ts')
  process.exitCode = await runProgram(argv, { terminal: process, version, resources: `${root}/resources` })
}

main(process.argv.slice(2))
