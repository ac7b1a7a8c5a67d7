// `watch`: revisions as they happen.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, InvalidArgumentError } from 'commander'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { usage } from '../failure.ts'
import { harmless, render } from '../print.ts'
import type { Session } from '../session.ts'
import { plain } from '../terminal.ts'
import { parseCount } from './list.ts'
import { type Revision, revisionRow } from './log.ts'

interface Flags {
  readonly since?: number
  readonly interval: number
  readonly count?: number
}

const PAGE = 1000

function parseSeconds(text: string): number {
  const seconds = Number(text.replace(/s$/, ''))
  if (!(seconds >= 0.1 && seconds <= 3600))
    throw new InvalidArgumentError('It must be seconds from 0.1 to 3600.')
  return seconds
}

export function defineWatch(command: Command, { run }: Tools): void {
  command
    .option('--since <revision>', 'start after this revision instead of now', parseCount)
    .option('--interval <seconds>', 'how often to ask', parseSeconds, 2)
    .option('--count <number>', 'end after so many revisions', parseCount)
    .addHelpText(
      'after',
      `\nCtrl-C ends it. With -o json there is one revision on each line.\n\nExamples:\n  ${PROGRAM} watch\n  ${PROGRAM} watch --since 0 -o json | jq -c .operation`,
    )
    .action(run(follow))
}

async function follow(
  session: Session,
  { since, interval, count = Number.POSITIVE_INFINITY }: Flags,
): Promise<void> {
  const { format } = session
  if (format.kind === 'yaml') throw usage('watch prints lines: use -o json, name or jsonpath=…')
  let last =
    since ?? Number((await session.api.get('/revisions', { query: { limit: 0 } })).headers['x-revision'])
  session.note(`watching ${session.api.url.href} after revision ${last}`)
  for (let shown = 0; shown < count; ) {
    for (const revision of (await newerThan(session, last)).slice(0, count - shown)) {
      await show(session, revision)
      last = revision.revision
      shown++
    }
    if (shown < count) await sleep(interval * 1000)
  }
}

/** The oldest first. */
async function newerThan({ api }: Session, last: number): Promise<Revision[]> {
  const found: Revision[] = []
  for (;;) {
    const before = found.at(-1)?.revision
    const { body } = await api.get('/revisions', {
      query: { limit: before === undefined ? 50 : PAGE, before },
    })
    const newer = (body as Revision[]).filter(({ revision }) => revision > last)
    found.push(...newer)
    if (newer.length === 0 || newer.length < body.length) return found.reverse()
  }
}

async function show(session: Session, revision: Revision): Promise<void> {
  const { terminal, format } = session
  if (format.kind === 'json') {
    terminal.stdout.write(harmless(terminal, `${JSON.stringify(revision)}\n`))
    return
  }
  const text = await render(terminal, format, false, {
    value: revision,
    names: [`revisions/${revision.revision}`],
    human: () => `${revisionRow(revision).map(plain).join('  ')}\n`,
  })
  terminal.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}
