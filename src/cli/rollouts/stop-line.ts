// `rollout stop-line` and `start-line`: one switch that keeps all rollouts from opening more.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { STOPPED_LINE as LINE } from '../../domain/rollouts/freeze.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { addActionFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDone } from '../output/write-report.ts'
import { FREEZE_ROUTES, pathOf } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

const NAME = `${FREEZE_ROUTES.name}/${LINE}`

export function defineLine(command: Command, { run }: Tools): void {
  addActionFlags(
    addSubcommand(
      command,
      'stop-line',
      'Stop the line: no wave opens any more, for the fleet or a part of it.',
    ).option('-l, --selector <selector>', 'only for clusters that match this label selector'),
  )
    .addHelpText(
      'after',
      `\nClusters that are served a change keep it, other writes pass, and abort is always possible. It is the freeze ${LINE}.\n\nExamples:\n  ${PROGRAM} rollout stop-line -m 'the registry is down'\n  ${PROGRAM} rollout stop-line -l environment=prod -m 'incident 4711'`,
    )
    .action(
      run((session, { selector, ...flags }: WriteFlags & { selector?: string }) =>
        stop(session, selector, flags),
      ),
    )
  addActionFlags(addSubcommand(command, 'start-line', 'Resume rollouts after stop-line.'))
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} rollout start-line -m 'the registry is back'`)
    .action(run(start))
}

async function stop(session: Session, selector: string | undefined, flags: WriteFlags): Promise<void> {
  const { message } = flags
  if (message === undefined) throw usage('why? Give -m: whoever waits for a rollout reads it')
  const path = pathOf(FREEZE_ROUTES, LINE)
  const known = await session.api.get(path, { expect: [404] })
  const freeze: JsonObject = {
    id: LINE,
    reason: message,
    blocks: 'rollouts',
    ...(selector !== undefined && { selector }),
  }
  const sent = await sendChange(session, flags, {
    ...(known.status === 404
      ? ({ method: 'POST', path: `/${FREEZE_ROUTES.name}` } as const)
      : ({ method: 'PUT', path } as const)),
    body: freeze,
    does: 'stop the line',
  })
  const whom = selector === undefined ? '' : ` for (${selector})`
  await printDone(session, sent, {
    name: NAME,
    told: () => `the line is stopped: no rollout opens any more${whom}`,
  })
  if (!sent.preview && session.format.kind === 'human')
    session.note(`to start it again: ${PROGRAM} rollout start-line`)
}

async function start(session: Session, flags: WriteFlags): Promise<void> {
  const path = pathOf(FREEZE_ROUTES, LINE)
  const known = await session.api.get(path, { expect: [404] })
  if (known.status === 404) return session.note('the line is not stopped: there is nothing to do')
  const sent = await sendChange(session, flags, { method: 'DELETE', path, does: 'start the line' })
  await printDone(session, sent, { name: NAME, told: () => 'the line runs again' })
}
