// `strategy`: how rollouts go through the fleet, as people write them down and read them.
import type { Command } from 'commander'
import { formatDuration } from '../../base/duration.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import type { Strategy } from '../../domain/rollouts/rollout.ts'
import { DEFAULT_STRATEGY, DEFAULT_STRATEGY_ID, gatesOf } from '../../domain/rollouts/strategy.ts'
import { gateWords, waveConditions, whoIn } from '../../domain/rollouts/wave-words.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { readOne } from '../input/read-files.ts'
import { durationOption, waveOption } from '../input/rollout-flags.ts'
import { WAVE_HELP } from '../input/wave-syntax.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import type { Look } from '../output/print.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { getDocument, listAll } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

type ShownStrategy = Strategy & { readonly id: string; readonly description?: string }

const BUILT_IN: ShownStrategy = {
  id: DEFAULT_STRATEGY_ID,
  description: 'Built in: tier by tier, then one cluster, 10 percent, 50 percent and the rest.',
  ...DEFAULT_STRATEGY,
}

export function defineListStrategies(command: Command, { run }: Tools, noun: Noun): void {
  command
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} strategy list\n  ${PROGRAM} strategy list -o yaml`)
    .action(
      run(async (session) => {
        const { documents } = await listAll(session, noun)
        const stored = documents as unknown as ShownStrategy[]
        const isReplaced = stored.some(({ id }) => id === DEFAULT_STRATEGY_ID)
        await session.print({
          value: documents,
          names: documents.map(({ id }) => `${noun.name}/${id}`),
          human: (look) => strategyTable(look, isReplaced ? stored : [BUILT_IN, ...stored]),
        })
      }),
    )
}

function strategyTable({ table, wide }: Look, strategies: readonly ShownStrategy[]): string {
  const headers = ['ID', 'WAVES', 'ON-FAILURE', 'BAKE']
  const rows = strategies.map(({ id, waves, on_failure = 'pause', bake_s = 0, description = '' }) => [
    id,
    waves.map(({ name }) => name).join(' > '),
    on_failure,
    bake_s > 0 ? formatDuration(bake_s) : '',
    ...(wide ? [description] : []),
  ])
  return table(wide ? [...headers, 'DESCRIPTION'] : headers, rows)
}

export function defineDescribeStrategy(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', 'its name; default is always there')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} strategy describe default`)
    .action(
      run(async (session, id: string) => {
        const strategy = await readStrategy(session, noun, id)
        await session.print({
          value: strategy,
          names: [`${noun.name}/${strategy.id}`],
          human: (look) => describeStrategy(look, strategy),
        })
      }),
    )
}

/** The built-in one has no document as long as nobody has replaced it. */
async function readStrategy(session: Session, noun: Noun, id: string): Promise<ShownStrategy> {
  if (id === DEFAULT_STRATEGY_ID) {
    const { documents } = await listAll(session, noun)
    if (documents.every((each) => each.id !== id)) return BUILT_IN
  }
  return (await getDocument(session, noun, id)).body as unknown as ShownStrategy
}

function describeStrategy(look: Look, strategy: ShownStrategy): string {
  const { id, description, waves, on_failure, bake_s = 0, stragglers, unmatched } = strategy
  const head = look.pairs([
    ['Strategy:', id],
    ...(description ? [['About:', description] as const] : []),
    ['Too many failures:', on_failure === 'abort' ? 'abort' : 'pause, until somebody decides'],
    ['After the last wave:', bake_s > 0 ? `watched for ${formatDuration(bake_s)}` : 'finished at once'],
    [
      'Clusters that were away:',
      stragglers === 'hold' ? 'are held at what they had' : 'follow at their next poll',
    ],
    ['Clusters in no wave:', unmatched === 'refuse' ? 'refuse the rollout' : 'come last'],
  ])
  const rows = waves.map((wave) => [
    wave.name,
    whoIn(wave),
    waveConditions(gateWords(gatesOf(wave)), wave).join(', '),
  ])
  return `${head}\n${look.table(['WAVE', 'CLUSTERS', 'PASSES WITH'], rows)}`
}

interface CreateFlags extends WriteFlags {
  readonly file?: string
  readonly wave?: readonly JsonObject[]
  readonly bake?: number
  readonly onFailure?: string
  readonly stragglers?: string
  readonly unmatched?: string
  readonly description?: string
}

export function defineCreateStrategy(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('[id]', 'its name; may come from the file')
    .optionsGroup('What it is:')
    .option('-f, --file <file>', 'read it from a YAML or JSON file, - for stdin; flags change what it says')
    .addOption(
      waveOption('--wave', "a wave (repeatable, in their order): 'canary: environment=dev; soak=10m'"),
    )
    .addOption(
      durationOption('--bake <duration>', 'how long all waves are watched before the change is finished'),
    )
    .option('--on-failure <pause|abort>', 'what too many failures do (default pause)')
    .option(
      '--stragglers <follow|hold>',
      'what clusters get that were away, after the finish (default follow)',
    )
    .option(
      '--unmatched <rest|refuse>',
      'clusters in no wave come last, or refuse the rollout (default rest)',
    )
    .option('--description <text>', 'what it is for')
  addWriteFlags(command.optionsGroup('How to do it:'), { isStaged: false })
    .addHelpText(
      'after',
      `\n${WAVE_HELP}\n\nExamples:\n  ${PROGRAM} strategy create careful --wave 'canary: environment=dev; applied=100; soak=10m' \\\n    --wave 'tenth: 10%; soak=30m' --wave 'rest; approve-before=1 others' --on-failure abort\n  ${PROGRAM} strategy create -f careful.yaml --dry-run`,
    )
    .action(
      run(async (session, id: string | undefined, flags: CreateFlags) => {
        const read = flags.file === undefined ? {} : await readOne(session.terminal, flags.file)
        if (!isObject(read)) throw usage(`${flags.file} must hold an object: the fields of the strategy`)
        const { bake: _, onFailure: __, ...write } = flags
        const document = { ...withoutTypeName(read), ...given(id, flags) }
        if (typeof document.id !== 'string')
          throw usage('the new strategy needs a name: give it as an argument')
        const sent = await sendChange(session, write, {
          method: 'POST',
          path: `/${noun.name}`,
          body: document,
        })
        await printDocumentWrite(session, sent, { noun, id: document.id, done: 'created' })
      }),
    )
}

function given(id: string | undefined, flags: CreateFlags): JsonObject {
  const { wave, bake, onFailure, stragglers, unmatched, description } = flags
  return {
    ...(id !== undefined && { id }),
    ...(description !== undefined && { description }),
    ...(wave && { waves: wave }),
    ...(onFailure !== undefined && { on_failure: onFailure }),
    ...(bake !== undefined && { bake_s: bake }),
    ...(stragglers !== undefined && { stragglers }),
    ...(unmatched !== undefined && { unmatched }),
  }
}

function withoutTypeName({ type: _, ...fields }: JsonObject): JsonObject {
  return fields
}
