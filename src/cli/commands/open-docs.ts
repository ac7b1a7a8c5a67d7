// `docs`: where the server's description of its API is to be read.
import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'

export function defineDocs(command: Command, { settings, context: { terminal } }: Tools): void {
  command
    .option('--open', 'open it in a browser')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} docs\n  ${PROGRAM} docs --open`)
    .action(async ({ open = false }: { open?: boolean }) => {
      const { href } = new URL('docs', settings().url)
      terminal.stdout.write(`${href}\n`)
      if (open) await openInBrowser(href)
    })
}

function openInBrowser(url: string): Promise<void> {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  spawn(program, [url], { stdio: 'ignore', detached: true })
    .once('spawn', resolve)
    .once('error', () => reject(usage(`there is no ${program} here to open a browser with`)))
    .unref()
  return promise
}
