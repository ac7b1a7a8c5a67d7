// What clusters are given: `assign`, `unassign`, and `patch` for their values.
import type { Command } from 'commander'
import type { Json, JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { usage } from '../failure.ts'
import { addFieldFlags, collect, readFieldFlags } from '../input/field-flags.ts'
import { parsePair } from '../input/field-values.ts'
import { addTargetFlags, needTargets, type TargetFlags, type Targets } from '../input/targets.ts'
import type { Noun } from '../server/nouns.ts'
import { addWriteFlags, printFleetWrite, sendBatch, type WriteFlags } from '../server/send-change.ts'
import type { Session } from '../session.ts'

type Flags = WriteFlags &
  TargetFlags & {
    readonly existing?: boolean
    readonly unset?: readonly string[]
    readonly set?: readonly string[]
    readonly replace?: boolean
  } & Readonly<Record<string, unknown>>

function describeTargets({ clusters, selector }: Targets): string {
  if (selector !== undefined) return `(${selector})`
  const ids = clusters as readonly string[]
  return ids.length === 1 ? (ids[0] as string) : `${ids.length} clusters`
}

async function sendOperation(
  session: Session,
  flags: Flags,
  operation: JsonObject,
  what: string,
): Promise<void> {
  const sent = await sendBatch(session, flags, [operation])
  await printFleetWrite(session, sent, what)
}

export function defineAssign(command: Command, { run, program }: Tools, noun: Noun): void {
  const { id: _id, ...properties } = noun.delivery?.reference.properties ?? {}
  command.argument('<id>', `id of the ${noun.singular}`)
  addTargetFlags(command.optionsGroup('Who gets it:')).option(
    '--existing',
    'only clusters that have it already: change how, and leave the others alone',
  )
  command.optionsGroup('What is different there:')
  const fields = addFieldFlags(command, Object.entries(properties), program, ['--unset'])
  command.option('--unset <field>', 'give up an override (repeatable)', collect)
  addWriteFlags(command.optionsGroup('How to do it:'))
    .addHelpText('after', assignExamples(noun))
    .action(
      run(async (session, id: string, flags: Flags) => {
        const targets = needTargets(flags)
        const set = readFieldFlags(fields, flags)
        const unset = (flags.unset ?? []).map((name): [string, Json] => {
          const field = name.replaceAll('-', '_')
          if (Object.hasOwn(set, field)) throw usage(`${field} is both set and unset`)
          if (Object.hasOwn(properties, field)) return [field, null]
          throw usage(`--unset must be one of ${Object.keys(properties).join(', ')}, not "${name}"`)
        })
        const ref = { id, ...set, ...Object.fromEntries(unset) }
        const how = flags.existing ? { merge: true } : { ensure: true }
        const operation = { op: 'assign', type: noun.name, ref, ...how, ...targets }
        await sendOperation(
          session,
          flags,
          operation,
          `assign ${noun.name}/${id} to ${describeTargets(targets)}`,
        )
      }),
    )
}

function assignExamples({ noun, delivery }: Noun): string {
  const [override] = Object.keys(delivery?.reference.properties ?? {}).filter(
    (name) => name !== 'id' && name !== delivery?.enabled_by,
  )
  const flag = override ? ` --${override.replaceAll('_', '-').replace(/s$/, '')} …` : ''
  return `\nClusters that have it keep what is not named here.\n\nExamples:\n  ${PROGRAM} ${noun} assign ID --cluster demo-cluster-01\n  ${PROGRAM} ${noun} assign ID --selector environment=dev --existing${flag} --dry-run`
}

export function defineUnassign(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id>', `id of the ${noun.singular}`)
  addWriteFlags(addTargetFlags(command))
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} ${noun.noun} unassign ID --cluster demo-cluster-01`)
    .action(
      run(async (session, id: string, flags: Flags) => {
        const targets = needTargets(flags)
        const operation = { op: 'unassign', type: noun.name, id, ...targets }
        await sendOperation(
          session,
          flags,
          operation,
          `unassign ${noun.name}/${id} from ${describeTargets(targets)}`,
        )
      }),
    )
}

export function definePatch(command: Command, { run }: Tools, noun: Noun): void {
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .option(
      '--set <key=value>',
      'set a value (repeatable); the key is taken as it is, dots included',
      collect,
    )
    .option('--unset <key>', 'remove a value (repeatable)', collect)
    .option('--replace', 'drop the values that are not named')
  addWriteFlags(addTargetFlags(command))
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} patch podinfo --cluster demo-cluster-01 --set replicaCount=3\n  ${PROGRAM} ${noun.noun} patch podinfo --selector environment=dev --set ui.message='Hello, fleet' --dry-run`,
    )
    .action(run((session, id: string, flags: Flags) => patchValues(session, id, flags)))
}

export async function patchValues(session: Session, id: string, flags: Flags): Promise<void> {
  const targets = needTargets(flags)
  const { set = [], unset = [], replace } = flags
  if (set.length + unset.length === 0 && !replace)
    throw usage('which values? Give --set key=value or --unset key')
  const pairs = set.map((text) => parsePair(text, '--set'))
  const both = unset.find((key) => pairs.some(([each]) => each === key))
  if (both !== undefined) throw usage(`${both} is both set and unset`)
  const values = Object.fromEntries([...pairs, ...unset.map((key): [string, null] => [key, null])])
  const operation = {
    op: 'patch_values',
    component: id,
    values,
    ...(replace && { replace: true }),
    ...targets,
  }
  await sendOperation(session, flags, operation, `patch values of ${id} on ${describeTargets(targets)}`)
}
