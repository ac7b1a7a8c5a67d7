// The pages of the documentation: their commands, and what a reader has to do before them.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export const ROOT = join(import.meta.dirname, '..')

export const everyPage = [
  'README.md',
  ...readdirSync(join(ROOT, 'docs'))
    .map((name) => `docs/${name}`)
    .sort(),
].filter((page) => page.endsWith('.md'))

export function contentOf(page: string): string {
  return readFileSync(join(ROOT, page), 'utf8')
}

export interface Step {
  readonly command: string
  readonly expected: string
}

export interface Block {
  readonly kind: string
  readonly steps: readonly Step[]
}

/** `console` is run without a terminal. `text` is a session on one: what somebody types is a part of what is on the screen. */
export const BLOCKS = /```(console|text)\n(\$ [\s\S]*?)\n```/g

/** In reading order; sessions with a server of their own are left out. */
export function blocksIn(text: string): Block[] {
  return [...text.matchAll(BLOCKS)]
    .map(([, kind = '', block = '']) => ({ kind, steps: stepsIn(block) }))
    .filter(isRun)
}

export function isRun({ kind, steps }: Block): boolean {
  return kind === 'console' || !steps.some(({ command }) => command.includes('--api-url'))
}

/** Commands start with `$ ` and go on while a quote is open, or after a backslash or a pipe. */
export function stepsIn(block: string): Step[] {
  const steps: Step[] = []
  const lines = block.split('\n')
  for (let i = 0; i < lines.length; ) {
    let command = (lines[i++] ?? '').replace(/^\$ /, '')
    while (isOpen(command) && i < lines.length) command += `\n${lines[i++]}`
    const output: string[] = []
    while (i < lines.length && !lines[i]?.startsWith('$ ')) output.push(lines[i++] as string)
    steps.push({ command, expected: output.join('\n') })
  }
  return steps
}

export function isOpen(command: string): boolean {
  const [, mark] = /<<-?'?(\w+)'?/.exec(command) ?? []
  if (mark !== undefined) return !command.split('\n').slice(1).includes(mark)
  return /[\\|]$/.test(command) || command.split("'").length % 2 === 0
}

/** What a page tells its reader to start, such as `DEMO_CLUSTERS=0 make fresh run`: the settings before `make`. */
export function startOf(page: string): Record<string, string> | undefined {
  const [, settings] =
    /```sh\n(?:[^`]*\n)?((?:[A-Z_]+=\S+ +)*)make (?:fresh )?run\b/.exec(contentOf(page)) ?? []
  if (settings === undefined) return undefined
  const words = settings.split(' ').filter((word) => word !== '')
  return Object.fromEntries(words.map((word) => word.split('=') as [string, string]))
}

/** Every command that a page gives, those that are not run here among them. */
export function commandsOf(page: string): string[] {
  const scripts = [...contentOf(page).matchAll(/```sh\n([\s\S]*?)\n```/g)].map(([, script = '']) => script)
  const sessions = [...contentOf(page).matchAll(BLOCKS)].flatMap(([, , block = '']) => stepsIn(block))
  return [...scripts, ...sessions.map(({ command }) => command)].map((command) =>
    command.replaceAll(/\\\n */g, ''),
  )
}
