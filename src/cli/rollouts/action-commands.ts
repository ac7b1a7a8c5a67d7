// What people do to a rollout: pause, resume, approve, skip, retry, abort, amend, finish, and tell how a check went.
import { type Command, Option } from 'commander'
import type { ShownRollout } from '../../api/rollout-schema.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { count } from '../../base/sentences.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { collectIds } from '../input/option-parsers.ts'
import { readOne } from '../input/read-files.ts'
import { addActionFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDone, printFleetWrite } from '../output/write-report.ts'
import { pathOf, ROLLOUT_ROUTES } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import { LAST_ROLLOUT, rolloutNamed } from './read-rollouts.ts'
import { sum } from './rollout-table.ts'

interface ActionFlags extends WriteFlags {
  readonly wave?: string
  readonly before?: boolean
  readonly after?: boolean
  readonly of?: string
  readonly cluster?: readonly string[]
}

interface Action {
  readonly name: string
  readonly summary: string
  /** What has happened then: `paused`. */
  readonly done: string
  /** What help says of it, and its examples. */
  readonly about: string
  readonly examples: readonly string[]
  addOptions?(command: Command): void
  readonly confirmations?: Parameters<typeof addActionFlags>[1]
  /** The body of the request, from the flags; the message is its remark. */
  body(flags: ActionFlags): JsonObject
}

const remarkOf = ({ message }: WriteFlags): JsonObject => (message === undefined ? {} : { remark: message })

const ACTIONS: readonly Action[] = [
  {
    name: 'pause',
    summary: 'Pause a rollout where it is.',
    done: 'paused',
    about: 'Clusters that are served the change stay so; no more of them are until it is resumed.',
    examples: [`pause r42 -m 'the database team looks into it'`],
    body: remarkOf,
  },
  {
    name: 'resume',
    summary: 'Resume a paused rollout.',
    done: 'resumed',
    about: 'It pauses again where more clusters fail than may: retry them, or skip them.',
    examples: ['resume r42'],
    body: () => ({}),
  },
  {
    name: 'approve',
    summary: 'Approve a wave that waits for it.',
    done: 'approved',
    about:
      'The wave that is next, unless --wave names one; before it opens, or after it has passed its gates.',
    examples: ['approve r42', `approve r42 --wave prod --before -m 'agreed in the change board'`],
    addOptions: (command) =>
      command
        .option('--wave <name>', 'the wave')
        .addOption(new Option('--before', 'that it may open').conflicts('after'))
        .addOption(new Option('--after', 'that what comes after it may open'))
        .option(
          '--of <plan>',
          'the plan that was looked at, from describe; if it is another one now, nothing is approved',
        ),
    body: ({ wave, before, after, of: plan, ...flags }) => ({
      ...(wave !== undefined && { wave }),
      ...(plan !== undefined && { plan }),
      ...((before || after) && { when: before ? 'before' : 'after' }),
      ...remarkOf(flags),
    }),
  },
  {
    name: 'skip',
    summary: 'Skip clusters or a wave.',
    done: 'goes on without them',
    about:
      'Clusters that are left out get what they had before, until the rollout is finished. A wave that is not open yet gets the change at the\nfinish; of one that is, the gates no longer count.',
    examples: ['skip r42 --wave uat', 'skip r42 --cluster prod-eu-07,prod-us-01'],
    addOptions: (command) =>
      command
        .option('--wave <name>', 'this wave')
        .option('--cluster <id>', 'this cluster (repeatable, or ids joined by commas)', collectIds),
    body({ wave, cluster }) {
      if ((wave === undefined) === (cluster === undefined))
        throw usage('what is to be left out? Give --wave NAME or --cluster ID')
      return wave === undefined ? { clusters: [...new Set(cluster)] } : { wave }
    },
  },
  {
    name: 'retry',
    summary: 'Check failed and absent clusters again, and go on.',
    done: 'goes on',
    about: 'Earlier failures no longer count, and clusters that were set aside are waited for again.',
    examples: ['retry r42'],
    body: () => ({}),
  },
  {
    name: 'abort',
    summary: 'Take a rollout back: every cluster gets what it had.',
    done: 'aborted',
    about:
      'From its next poll on, every cluster is served what it would be without the rollout. It cannot be resumed. Freezes do not delay it.',
    examples: ['abort r42 --dry-run', `abort r42 -m 'it breaks the ingress'`],
    body: remarkOf,
  },
  {
    name: 'finish',
    summary: 'Give the change to all remaining clusters at once.',
    done: 'finished',
    about:
      'It does not wait for waves that have not passed. If there are any, the word finish has to be typed, or --confirm finish given.',
    examples: ['finish r42 --dry-run', 'finish r42 --confirm finish --yes'],
    confirmations: ['finish'],
    body: () => ({}),
  },
]

export function defineActions(command: Command, { run }: Tools): void {
  for (const action of ACTIONS) {
    const { name, summary, about, examples } = action
    const own = addSubcommand(command, name, summary).argument('<rollout>', `its id, or ${LAST_ROLLOUT}`)
    action.addOptions?.(own)
    const lines = examples.map((line) => `  ${PROGRAM} rollout ${line}`).join('\n')
    addActionFlags(own, action.confirmations ?? [])
      .addHelpText('after', `\n${about}\n\nExamples:\n${lines}`)
      .action(run((session, text: string, flags: ActionFlags) => act(session, action, text, flags)))
  }
  defineAmend(command, { run })
  defineCheck(command, { run })
}

async function act(
  session: Session,
  { name, done, body }: Action,
  text: string,
  flags: ActionFlags,
): Promise<void> {
  const sent = body(flags)
  const id = await rolloutNamed(session, text)
  await send(session, flags, { id, name, done, body: sent })
}

interface Sending {
  readonly id: string
  readonly name: string
  readonly done: string
  readonly body: JsonObject
}

async function send(session: Session, flags: WriteFlags, { id, name, done, body }: Sending): Promise<void> {
  const sent = await sendChange(session, flags, {
    method: 'POST',
    path: pathOf(ROLLOUT_ROUTES, id, name),
    body,
    does: `${name} rollout ${id}`,
  })
  const told = (rollout: ShownRollout): string => `rollout ${id} ${done}${aftermath(name, rollout)}`
  await printDone(session, sent, { name: `rollouts/${id}`, told })
}

function aftermath(name: string, rollout: ShownRollout): string {
  const opened = sum(rollout.waves, 'opened')
  if (name !== 'abort' || opened === 0) return ''
  const whom =
    opened === 1 ? '1 cluster goes back to what it' : `${count(opened, 'cluster')} go back to what they`
  return `: ${whom} had, at the next poll`
}

type AmendFlags = WriteFlags & { readonly file: string }

function defineAmend(command: Command, { run }: Pick<Tools, 'run'>): void {
  const own = addSubcommand(command, 'amend', 'Amend a rollout: other operations in the same waves.')
    .argument('<rollout>', `its id, or ${LAST_ROLLOUT}`)
    .requiredOption('-f, --file <file>', 'a YAML or JSON file with operations, - for stdin')
    .option('--restart-waves', 'begin with the first wave again')
  addActionFlags(own)
    .addHelpText(
      'after',
      `\nThe operations replace those that the rollout was started with. Clusters that are served the change get the new one at\nonce and have to pass the gates again; approvals are void. Every write does the same with --amend.\n\nExamples:\n  ${PROGRAM} component update grafana --set oci_tag=v2.0.1 --amend r42 -m 'without the bug'\n  ${PROGRAM} rollout amend r42 -f change.yaml --restart-waves --dry-run`,
    )
    .action(
      run(async (session, text: string, { file, ...flags }: AmendFlags) => {
        const read = await readOne(session.terminal, file)
        const operations = isObject(read) ? read.operations : read
        if (!Array.isArray(operations)) throw usage(`${file} must hold a list of operations`)
        const id = await rolloutNamed(session, text)
        const sent = await sendChange(
          session,
          { ...flags, amend: id },
          { method: 'POST', path: '/batch', body: { operations: operations as Json } },
        )
        await printFleetWrite(session, sent, `amend rollout ${id}`)
      }),
    )
}

interface CheckFlags extends WriteFlags {
  readonly wave?: string
  readonly passed?: boolean
  readonly failed?: boolean
}

function defineCheck(command: Command, { run }: Pick<Tools, 'run'>): void {
  const own = addSubcommand(command, 'check', 'Report the result of an external check that a wave waits for.')
    .argument('<rollout>', `its id, or ${LAST_ROLLOUT}`)
    .argument('<name>', 'the name of the check')
    .requiredOption('--wave <name>', 'the wave that waits for it')
    .addOption(new Option('--passed', 'it went well').conflicts('failed'))
    .addOption(new Option('--failed', 'it did not'))
  addActionFlags(own, [])
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} rollout check r42 smoke --wave canary --passed\n  ${PROGRAM} rollout check r42 smoke --wave canary --failed -m "$BUILD_URL"`,
    )
    .action(
      run(
        async (session, text: string, name: string, { wave = '', passed, failed, ...flags }: CheckFlags) => {
          if (!passed && !failed) throw usage('how did it go? Give --passed or --failed')
          const body = { wave, name, ok: passed === true, ...remarkOf(flags) }
          const id = await rolloutNamed(session, text)
          await send(session, flags, { id, name: 'check', done: `was told of ${name}`, body })
        },
      ),
    )
}
