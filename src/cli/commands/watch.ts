// `watch`: revisions as they happen.

import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Revision } from '../../api/wire-types.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import { harmless, render } from '../output/print.ts'
import { plain } from '../output/terminal.ts'
import { type Answer, Refusal } from '../server/api-client.ts'
import type { Session } from '../session.ts'
import { parseCount } from './list.ts'
import { revisionRow } from './log.ts'

interface Flags {
  readonly since?: number
  readonly count?: number
}

/** How often to come back to a server that does not answer: for some minutes. */
const TRIES = 30
const FIRST_DELAY_MS = 1000
const LONGEST_DELAY_MS = 10_000

export function defineWatch(command: Command, { run }: Tools): void {
  command
    .option('--since <revision>', 'start after this revision instead of now', parseCount)
    .option('--count <number>', 'end after so many revisions', parseCount)
    .addHelpText(
      'after',
      `\nCtrl-C ends it. With -o json there is one revision on each line.\n\nExamples:\n  ${PROGRAM} watch\n  ${PROGRAM} watch --since 0 -o json | jq -c .operation`,
    )
    .action(run(follow))
}

async function follow(session: Session, { since, count = Number.POSITIVE_INFINITY }: Flags): Promise<void> {
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
    body = (await comeBack(session, last)).body
  }
}

/** Whoever has waited for hours waits for a server that restarts, too. */
async function comeBack({ api, note }: Session, last: number): Promise<Answer> {
  for (let attempt = 1; ; attempt++) {
    const delay = Math.min(FIRST_DELAY_MS * 2 ** (attempt - 1), LONGEST_DELAY_MS)
    await sleep((delay * (1 + Math.random())) / 2)
    try {
      return await api.stream('/watch', { headers: { 'last-event-id': String(last) } })
    } catch (error) {
      if (attempt === TRIES || !isPassing(error)) throw error
      note((error as Failure).message)
    }
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof Refusal) return error.status >= 500
  return error instanceof Failure && error.exitCode === EXIT.unreachable
}

/** What comes of a stream before it ends, or is cut. */
async function* revisionsIn(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Revision> {
  for await (const event of eventsIn(stream)) {
    const [data] = event.filter((line) => line.startsWith('data:'))
    if (event.includes('event: revision') && data) yield JSON.parse(data.slice('data:'.length))
  }
}

/** The lines of each event. */
async function* eventsIn(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string[]> {
  let event: string[] = []
  for await (const line of linesIn(stream)) {
    if (line !== '') event.push(line)
    else {
      yield event
      event = []
    }
  }
}

async function* linesIn(stream: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for await (const bytes of stream) {
      const [first = '', ...more] = decoder.decode(bytes, { stream: true }).split('\n')
      rest += first
      for (const next of more) {
        yield rest.replace(/\r$/, '')
        rest = next
      }
    }
  } catch {
    // A connection that breaks is one that ended: what is not whole comes again.
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
