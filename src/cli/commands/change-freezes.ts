// `freeze`: times in which clusters are served nothing new, as people write them down and read them.
import { type Command, Option } from 'commander'
import { formatDuration } from '../../base/duration.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { fromNow } from '../../base/relative-time.ts'
import { type Freeze, freezePhase } from '../../domain/rollouts/freeze.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parseExpiry } from '../input/moments.ts'
import { readOne } from '../input/read-files.ts'
import { durationOption } from '../input/rollout-flags.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import type { Look } from '../output/print.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { getDocument, listAll } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'

const EVERYBODY = 'all clusters'

export function defineListFreezes(command: Command, { run }: Tools, noun: Noun): void {
  command
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} freeze list\n  ${PROGRAM} freeze list -o name`)
    .action(
      run(async (session) => {
        const { documents } = await listAll(session, noun)
        const freezes = documents as unknown as Freeze[]
        await session.print({
          value: documents,
          names: freezes.map(({ id }) => `${noun.name}/${id}`),
          human: (look) => (freezes.length === 0 ? '' : freezeTable(look, freezes, new Date())),
        })
        if (freezes.length === 0 && session.format.kind === 'human') session.note('No freezes found.')
      }),
    )
}

function freezeTable({ table }: Look, freezes: readonly Freeze[], now: Date): string {
  return table(
    ['ID', 'NOW', 'CLUSTERS', 'WHEN', 'BLOCKS', 'BYPASS', 'REASON'],
    freezes.map((freeze) => [
      freeze.id,
      standing(freeze, now),
      freeze.selector ?? EVERYBODY,
      timesOf(freeze),
      freeze.blocks ?? 'changes',
      freeze.bypass ?? 'admin',
      freeze.reason,
    ]),
  )
}

/** `frozen, ends in 3h`, `off, begins in 2d`, `over`. */
function standing(freeze: Freeze, now: Date): string {
  const { isOn, until } = freezePhase(freeze, now.getTime())
  const when = until === undefined ? undefined : fromNow(new Date(until).toISOString(), now)
  if (isOn) return when === undefined ? 'frozen' : `frozen, ends ${when}`
  return when === undefined ? 'over' : `off, begins ${when}`
}

/** When it is on, as it was written down. */
function timesOf({ cron, duration_s = 0, zone = 'UTC', from, until }: Freeze): string {
  const bounds = [
    ...(from === undefined ? [] : [`from ${short(from)}`]),
    ...(until === undefined ? [] : [`until ${short(until)}`]),
  ]
  const schedule = cron === undefined ? [] : [`${cron} (${zone}) for ${formatDuration(duration_s)}`]
  return [...schedule, ...bounds].join(' ') || 'until it is deleted'
}

function short(time: string): string {
  return time.replace(/(?::00)?\.\d+Z$/, 'Z')
}

export function defineDescribeFreeze(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', 'id of the freeze')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} freeze describe year-end`)
    .action(
      run(async (session, id: string) => {
        const { body } = await getDocument(session, noun, id)
        await session.print({
          value: body,
          names: [`${noun.name}/${body.id}`],
          human: (look) => describeFreeze(look, body as unknown as Freeze, new Date()),
        })
      }),
    )
}

const WHO_PASSES: Readonly<Record<string, string>> = {
  admin: 'admins, with --bypass and a message',
  editor: 'editors and admins, with --bypass and a message',
  nobody: 'nobody; abort, revert and rollback always do',
}

function describeFreeze({ pairs }: Look, freeze: Freeze, now: Date): string {
  const { id, reason, selector, blocks, bypass = 'admin' } = freeze
  return pairs([
    ['Freeze:', id],
    ['Now:', standing(freeze, now)],
    ['When:', timesOf(freeze)],
    ['Clusters:', selector ?? EVERYBODY],
    [
      'Keeps from:',
      blocks === 'rollouts'
        ? 'opening waves of rollouts'
        : 'changing what they are served, and opening waves',
    ],
    ['Who passes it:', WHO_PASSES[bypass] ?? bypass],
    ['Reason:', reason],
  ])
}

interface CreateFlags extends WriteFlags {
  readonly file?: string
  readonly selector?: string
  readonly from?: string
  readonly until?: string
  /** Seconds. */
  readonly for?: number
  readonly cron?: string
  readonly duration?: number
  readonly zone?: string
  readonly blocks?: string
  readonly bypassBy?: string
  readonly reason?: string
}

export function defineCreateFreeze(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('[id]', 'its name; may come from the file')
    .optionsGroup('What it is:')
    .option('-f, --file <file>', 'read it from a YAML or JSON file, - for stdin; flags change what it says')
    .option(
      '-l, --selector <selector>',
      'only clusters that match this label selector; without it all of them',
    )
    .option('--from <time>', 'from then on: 2h, 2027-01-31 or an RFC 3339 time (default now)')
    .option('--until <time>', 'until then')
    .addOption(durationOption('--for <duration>', 'for so long from its beginning: 3d').conflicts('until'))
    .option('--cron <expression>', 'again and again, from each of these times on: "0 18 * * 5"')
    .addOption(durationOption('--duration <duration>', 'with --cron: for how long each time'))
    .option('--zone <zone>', 'with --cron: the time zone, such as Europe/Vienna (default UTC)')
    .addOption(
      new Option('--blocks <what>', 'changes, or only rollouts: no wave opens, and writes pass').choices([
        'changes',
        'rollouts',
      ]),
    )
    .addOption(
      new Option('--bypass-by <whom>', 'who may pass it with --bypass and a message').choices([
        'admin',
        'editor',
        'nobody',
      ]),
    )
    .option('--reason <text>', 'why; whoever is refused reads it (default: the message)')
  addWriteFlags(command.optionsGroup('How to do it:'), { isStaged: false })
    .addHelpText(
      'after',
      `\nWithout an end it lasts until it is deleted. It never delays abort, revert and rollback. To stop only rollouts, at once:\n${PROGRAM} rollout stop-line.\n\nExamples:\n  ${PROGRAM} freeze create year-end --from 2026-12-18 --until 2027-01-04 --reason 'nobody is here'\n  ${PROGRAM} freeze create weekends -l environment=prod --cron '0 18 * * 5' --duration 62h --zone Europe/Vienna --reason 'no changes at weekends'\n  ${PROGRAM} freeze create incident-4711 -l region=eu --for 4h --bypass-by editor --reason 'the network is down'`,
    )
    .action(
      run(async (session, id: string | undefined, flags: CreateFlags) => {
        const read = flags.file === undefined ? {} : await readOne(session.terminal, flags.file)
        if (!isObject(read)) throw usage(`${flags.file} must hold an object: the fields of the freeze`)
        const { type: _, ...fields } = read
        const document: JsonObject = { ...fields, ...fieldsGiven(id, flags, new Date()) }
        if (typeof document.id !== 'string')
          throw usage('the new freeze needs a name: give it as an argument')
        if (document.reason === undefined) throw usage('why? Give --reason: whoever is refused reads it')
        const sent = await sendChange(session, flags, {
          method: 'POST',
          path: `/${noun.name}`,
          body: document,
        })
        await printDocumentWrite(session, sent, { noun, id: document.id, done: 'created' })
      }),
    )
}

function fieldsGiven(id: string | undefined, flags: CreateFlags, now: Date): JsonObject {
  const { selector, cron, duration, zone, blocks, bypassBy, message, reason = message } = flags
  const from = flags.from === undefined ? undefined : parseExpiry(flags.from, '--from', now)
  const begins = from === undefined ? now : new Date(from)
  const until =
    flags.for === undefined
      ? flags.until && parseExpiry(flags.until, '--until', now)
      : new Date(begins.getTime() + flags.for * 1000).toISOString()
  return Object.fromEntries(
    Object.entries({
      id,
      selector,
      from,
      until,
      cron,
      duration_s: duration,
      zone,
      blocks,
      bypass: bypassBy,
      reason,
    }).filter((entry): entry is [string, string | number] => entry[1] !== undefined),
  )
}
