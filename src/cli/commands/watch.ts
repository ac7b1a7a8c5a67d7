// `watch`: revisions as they happen.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import { backoff } from '../../runtime/backoff.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parseCount } from '../input/option-parsers.ts'
import { harmless, render } from '../output/print.ts'
import { revisionRow } from '../output/revision-table.ts'
import { plain } from '../output/terminal.ts'
import type { ApiResponse } from '../server/api.ts'
import { isTransient } from '../server/refusal.ts'
import { revisionsIn } from '../server/watch-stream.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly since?: number
  readonly count?: number
}

/** Attempts to reconnect to a server that does not respond: some minutes. */
const TRIES = 30
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 10_000

export function defineWatch(command: Command, { run }: Tools): void {
  command
    .option('--since <revision>', 'start after this revision instead of now', parseCount)
    .option('--count <number>', 'end after so many revisions', parseCount)
    .addHelpText(
      'after',
      `\nCtrl-C ends it. With -o json there is one revision on each line.\n\nExamples:\n  ${PROGRAM} watch\n  ${PROGRAM} watch --since 0 -o json | jq -c .operation`,
    )
    .action(run(watch))
}

async function watch(session: Session, { since, count = Number.POSITIVE_INFINITY }: Flags): Promise<void> {
  const { format, api } = session
  if (format.kind === 'yaml') throw usage('watch prints lines: use -o json, name or jsonpath=…')
  let { headers, body } = await api.stream('/watch', { query: { since } })
  let last = since ?? Number(headers['x-revision'])
  session.note(`watching ${api.url.href} after revision ${last}`)
  for (let shown = 0; shown < count; ) {
    for await (const revision of revisionsIn(body)) {
      await show(session, revision)
      last = revision.revision
      shown++
      if (shown === count) return
    }
    session.note(`the stream was cut after revision ${last}: coming back`)
    body = (await reconnect(session, last)).body
  }
}

/** Connects again after a revision, also to a server that takes some minutes to restart. */
async function reconnect({ api, note }: Session, last: number): Promise<ApiResponse> {
  const delays = backoff({ first: FIRST_DELAY_MS, max: MAX_DELAY_MS })
  for (let attempt = 1; ; attempt++) {
    await sleep(delays.next())
    try {
      return await api.stream('/watch', { headers: { 'last-event-id': String(last) } })
    } catch (error) {
      if (attempt === TRIES || !isTransient(error)) throw error
      note(error.message)
    }
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
