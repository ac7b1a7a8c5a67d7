// `NOUN assign`: gives a definition to clusters, or changes how they have it.
import type { Command } from 'commander'
import type { Json } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { addFieldFlags, addReferenceFlags, readFieldFlags, referenceOf } from '../input/field-flags.ts'
import { collect } from '../input/option-parsers.ts'
import { addTargetFlags, describeTargets, needTargets, type TargetFlags } from '../input/targets.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { sendBatch } from '../server/send-change.ts'

type Flags = WriteFlags &
  TargetFlags & {
    readonly existing?: boolean
    readonly unset?: readonly string[]
  } & Readonly<Record<string, unknown>>

export function defineAssign(command: Command, { run, program }: Tools, noun: Noun): void {
  const { id: _id, ...properties } = noun.delivery?.reference.properties ?? {}
  command.argument('<id>', `id of the ${noun.singular}`)
  addTargetFlags(command.optionsGroup('Who gets it:')).option(
    '--existing',
    'only clusters that have it already: change how, and leave the others alone',
  )
  command.optionsGroup('What is different there:')
  const fields = addFieldFlags(command, Object.entries(properties), program, { later: ['--unset'] })
  const others = addReferenceFlags(command, program, noun, { isHidden: true })
  command.option('--unset <field>', 'give up an override (repeatable)', collect)
  addWriteFlags(command.optionsGroup('How to do it:'))
    .addHelpText('after', assignExamples(noun))
    .action(
      run(async (session, id: string, flags: Flags) => {
        const targets = needTargets(flags)
        const set = { ...referenceOf(readFieldFlags(others, flags)), ...readFieldFlags(fields, flags) }
        const unset = (flags.unset ?? []).map((name): [string, Json] => {
          const field = name.replaceAll('-', '_')
          if (Object.hasOwn(set, field)) throw usage(`${field} is both set and unset`)
          if (Object.hasOwn(properties, field)) return [field, null]
          throw usage(`--unset must be one of ${Object.keys(properties).join(', ')}, not "${name}"`)
        })
        const ref = { id, ...set, ...Object.fromEntries(unset) }
        const how = flags.existing ? { merge: true } : { ensure: true }
        const operation = { op: 'assign', type: noun.name, ref, ...how, ...targets }
        const sent = await sendBatch(session, flags, [operation])
        await printFleetWrite(session, sent, `assign ${noun.name}/${id} to ${describeTargets(targets)}`)
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
