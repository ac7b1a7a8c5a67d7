// `watch`: revisions as they happen.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import { backoff } from '../../runtime/backoff.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { readReach } from '../fleet/print-revisions.ts'
import { parseCount } from '../input/option-parsers.ts'
import {
  addRevisionFilters,
  filterQuery,
  parseSince,
  type RevisionFilters,
} from '../input/revision-filters.ts'
import { harmless, type Look, render } from '../output/print.ts'
import { revisionHeaders, revisionRow } from '../output/revision-table.ts'
import { cut, plain } from '../output/terminal.ts'
import type { ApiResponse, Call } from '../server/api.ts'
import { isTransient } from '../server/refusal.ts'
import { revisionsIn } from '../server/watch-stream.ts'
import type { Session } from '../session.ts'

interface Flags extends RevisionFilters {
  readonly since?: string
  readonly count?: number
}

/** Attempts to reconnect to a server that does not respond: some minutes. */
const TRIES = 30
const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 10_000

export function defineWatch(command: Command, { run }: Tools): void {
  addRevisionFilters(command)
    .option(
      '--since <revision|time>',
      'start after this revision, or from then on, instead of now: 40, 2h, yesterday',
    )
    .option('--count <number>', 'end after so many revisions', parseCount)
    .addHelpText(
      'after',
      `\nCtrl-C ends it. With -o json there is one revision on each line.\n\nExamples:\n  ${PROGRAM} watch -l environment=prod\n  ${PROGRAM} watch --since 0 -o json | jq -c .operation`,
    )
    .action(run(watch))
}

async function watch(
  session: Session,
  { since: start, count = Number.POSITIVE_INFINITY, ...flags }: Flags,
): Promise<void> {
  const { format, api } = session
  const filters = filterQuery(session, flags)
  if (format.kind === 'yaml') throw usage('watch prints lines: use -o json, name or jsonpath=…')
  const since = await revisionBefore(session, start)
  let { headers, body } = await api.stream('/watch', { query: { since } })
  let last = since ?? Number(headers['x-revision'])
  session.note(`watching ${api.url.href} after revision ${last}`)
  for (let shown = 0; shown < count; ) {
    for await (const revision of revisionsIn(body)) {
      last = revision.revision
      if (filters && !(await matches(session, revision, filters))) continue
      await show(session, revision, shown === 0)
      shown++
      if (shown === count) return
    }
    session.note(`the stream was cut after revision ${last}: coming back`)
    body = (await reconnect(session, last)).body
  }
}

/** The revision to start after, from `--since`. */
async function revisionBefore({ api }: Session, text: string | undefined): Promise<number | undefined> {
  const { after, since } = parseSince(text)
  if (since === undefined) return after
  const { body } = await api.get('/revisions', { query: { until: since, limit: 1 } })
  return body[0]?.revision ?? 0
}

/** The server decides, as it does for the log. */
async function matches({ api }: Session, { revision }: Revision, filters: Call['query']): Promise<boolean> {
  const { body } = await api.get('/revisions', { query: { ...filters, before: revision + 1, limit: 1 } })
  return body[0]?.revision === revision
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

async function show(session: Session, revision: Revision, isFirst: boolean): Promise<void> {
  const { terminal, format } = session
  if (format.kind === 'json') {
    terminal.stdout.write(harmless(terminal, `${JSON.stringify(revision)}\n`))
    return
  }
  const reach = format.kind === 'human' ? await readReach(session, [revision]) : undefined
  const text = await render(terminal, format, isFirst, {
    value: revision,
    names: [`revisions/${revision.revision}`],
    human: (look) => line(look, isFirst ? [revisionHeaders(reach)] : [], revisionRow(look, revision, reach)),
  })
  terminal.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
}

/** What is still to come is not known: columns have a width of their own. */
const WIDTHS = [8, 20, 10, 20, 20]

function line({ width }: Look, heads: readonly string[][], row: readonly string[]): string {
  const lay = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => plain(cell).padEnd(WIDTHS[i] ?? 0))
      .join('  ')
      .trimEnd()
  const lines = [...heads, row].map(lay)
  return lines.map((text) => `${width === undefined ? text : cut(text, width)}\n`).join('')
}
