#!/usr/bin/env node
// The command line as a process: arguments and environment in, an exit code out.
import { shippedVersion } from './cli/shipped.ts'

// A reader may close the pipe early, like head does; other errors, such as a full disk, are reported.
process.stdout.on('error', ({ code, message }: NodeJS.ErrnoException) => {
  if (code !== 'EPIPE') process.stderr.write(`Error: the output cannot be written: ${message}\n`)
  process.exit(code === 'EPIPE' ? 0 : 1)
})
process.stderr.on('error', () => {})

async function main(argv: readonly string[]): Promise<void> {
  const version = shippedVersion()
  if (argv.length === 1 && (argv[0] === '--version' || argv[0] === '-V')) {
    process.stdout.write(`${version}\n`)
    return
  }
  // Loaded here: --version needs none of it.
  const { runProgram } = await import('./cli/program.ts')
  const code = await runProgram(argv, { terminal: process, version })
  // Connections may still be open, so the process must exit itself: after stdout is flushed.
  process.stdout.write('', (error) => {
    if (!error) process.exit(code)
  })
}

main(process.argv.slice(2))
