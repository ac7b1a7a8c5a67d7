// What a command works with: the server, its types, and the terminal.

import type { Settings } from './config/settings.ts'
import type { Goal } from './input/goals.ts'
import { type Format, type Printable, render } from './output/print.ts'
import { painter, plain, type Terminal } from './output/terminal.ts'
import { wrapFor } from './output/wrap.ts'
import type { Api } from './server/api.ts'
import type { Noun } from './server/nouns.ts'

/** A revision, and how far clusters have to come with it; or a rollout that has to end. */
type Awaited = { readonly revision: number; readonly goal: Goal } | { readonly rollout: string }

export interface Session {
  readonly terminal: Terminal
  readonly settings: Settings
  readonly api: Api
  readonly nouns: readonly Noun[]
  readonly format: Format
  readonly quiet: boolean
  readonly version: string
  /** Revisions whose clusters, and rollouts whose ends, are waited for when the command is done. */
  readonly awaited: Awaited[]
  /** Prints the result on stdout. */
  print(result: Printable): Promise<void>
  /** Prints a note for people on stderr, unless --quiet is given. */
  note(text: string): void
  /** Prints a warning on stderr, also with --quiet. */
  warn(text: string): void
}

interface Options {
  readonly terminal: Terminal
  readonly settings: Settings
  readonly api: Api
  readonly nouns: readonly Noun[]
  readonly format: Format
  readonly headers: boolean
  readonly quiet: boolean
  readonly version: string
}

export function createSession(options: Options): Session {
  const { terminal, format, headers, quiet } = options
  const { stdout, stderr } = terminal
  return {
    ...options,
    awaited: [],
    async print(result) {
      const hidden = new Set<string>()
      const text = await render(terminal, format, headers, result, (names) => {
        for (const name of names) hidden.add(name)
      })
      if (!(result.isPaged && (await paged(terminal, text)))) stdout.write(text)
      if (hidden.size > 0) this.note(`no room for ${[...hidden].join(', ')}: -o wide shows all`)
    },
    note(text) {
      if (!quiet) stderr.write(wrapFor(stderr, `${text}\n`))
    },
    warn(text) {
      stderr.write(wrapFor(stderr, `${painter(terminal, stderr)('yellow', 'Warning:')} ${plain(text)}\n`))
    },
  }
}

/** Shows a text through a pager, where it needs one; loaded here, since most commands never do. */
async function paged(terminal: Terminal, text: string): Promise<boolean> {
  const { showPaged } = await import('./output/pager.ts')
  return showPaged(terminal, text)
}
