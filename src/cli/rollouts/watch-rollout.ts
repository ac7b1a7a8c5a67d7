// `rollout watch`: on a terminal a picture that is drawn anew, elsewhere a line for every change.
import type { ShownRollout } from '../../api/rollout-schema.ts'
import { usage } from '../failure.ts'
import { harmless, render } from '../output/print.ts'
import { openScreen } from '../output/screen.ts'
import { plain } from '../output/terminal.ts'
import type { Session } from '../session.ts'
import { describeEnd, followRollout } from './follow-rollout.ts'
import { describeProgress } from './rollout-report.ts'
import { currentWave } from './rollout-table.ts'

export async function watchRollout(session: Session, id: string): Promise<void> {
  const { format } = session
  if (format.kind === 'yaml') throw usage('watch prints lines: use -o json, name or jsonpath=…')
  if (format.kind !== 'human') return watchValues(session, id)
  const screen = openScreen(session.terminal)
  if (!screen) return watchLines(session, id)
  await followRollout(session, id, (rollout) =>
    screen.show((look) => describeProgress(look, rollout, new Date())),
  )
}

/** A line for every change, as JSON or by a template. */
async function watchValues(session: Session, id: string): Promise<void> {
  const { terminal, format } = session
  let last = ''
  await followRollout(session, id, async (rollout) => {
    const line = JSON.stringify(rollout)
    if (line === last) return
    last = line
    if (format.kind === 'json') return void terminal.stdout.write(harmless(terminal, `${line}\n`))
    const printable = { value: rollout, names: [`rollouts/${id}`], human: () => '' }
    const text = await render(terminal, format, false, printable)
    terminal.stdout.write(text.endsWith('\n') ? text : `${text}\n`)
  })
}

/** What happened, and how far the wave is that is open. */
async function watchLines(session: Session, id: string): Promise<void> {
  const { stdout } = session.terminal
  const print = (time: string, text: string): void =>
    void stdout.write(`${time.replace(/\.\d+Z$/, 'Z')}  ${plain(text)}\n`)
  const told = new Set<string>()
  let last = ''
  const ended = await followRollout(session, id, (rollout) => {
    for (const { at, by, what, remark } of rollout.events) {
      const line = `${by}: ${what}${remark === undefined ? '' : `: ${remark}`}`
      if (told.has(`${at} ${line}`)) continue
      told.add(`${at} ${line}`)
      print(at, line)
    }
    const line = progressLine(rollout)
    if (line !== '' && line !== last) print(new Date().toISOString(), line)
    last = line
  })
  session.note(describeEnd(ended))
}

/** `canary: 2 of 4 open, 1 served, 0 applied, 0 failed; wave canary soaks until …`. */
function progressLine(rollout: ShownRollout): string {
  const wave = currentWave(rollout)
  const waiting = rollout.waiting_for === null ? [] : [rollout.waiting_for]
  if (!wave || wave.opened === 0) return waiting.join('')
  const { name, opened, members, served, applied, failed } = wave
  const counts = `${name}: ${opened} of ${members} open, ${served} served, ${applied} applied, ${failed} failed`
  return [counts, ...waiting].join('; ')
}
