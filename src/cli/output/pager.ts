// Long text on a terminal, a page at a time.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Terminal } from './terminal.ts'

/** Shows a text through a pager where it is longer than the terminal; returns whether it did. */
export async function showPaged({ env, stdin, stdout }: Terminal, text: string): Promise<boolean> {
  const pager = env.FLUX_API_PAGER ?? env.PAGER ?? 'less'
  const isLong = text.split('\n').length > (stdout.rows || 24)
  if (!stdout.isTTY || !stdin.isTTY || !isLong || ['', 'cat'].includes(pager) || env.TERM === 'dumb')
    return false
  // As git does it: colours are shown, and what fits is left on the screen.
  const child = spawn('sh', ['-c', pager], {
    env: { LESS: 'FRX', ...env },
    stdio: ['pipe', 'inherit', 'inherit'],
  })
  child.stdin.on('error', () => {})
  child.stdin.end(text)
  const [code] = (await once(child, 'close')) as [number | null]
  // 127: there is no such program.
  return code !== 127
}
