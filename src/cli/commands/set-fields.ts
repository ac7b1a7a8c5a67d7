// `NOUN set`: changes how clusters have a definition, where they have it: it never installs anything.
import type { Command } from 'commander'
import type { Json } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parsePair, parseValue } from '../input/field-values.ts'
import { addTargetFlags, describeTargets, needTargets, type TargetFlags } from '../input/targets.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import type { Noun } from '../server/nouns.ts'
import { sendBatch } from '../server/send-change.ts'

export function defineSet(command: Command, { run }: Tools, noun: Noun): void {
  const { id: _id, ...fields } = noun.delivery?.reference.properties ?? {}
  const [field = ''] = Object.keys(fields).filter((name) => name !== noun.delivery?.enabled_by)
  command
    .argument('<id>', `id of the ${noun.singular}`)
    .argument(
      '<field=value...>',
      `field=value to override, field- to follow the catalog again: ${Object.keys(fields).join(', ')}`,
    )
  addWriteFlags(addTargetFlags(command))
    .addHelpText(
      'after',
      `\nOnly clusters that have it already are changed; assign gives it to others.\n\nExamples:\n  ${PROGRAM} ${noun.noun} set ID ${field}=… -l environment=dev --dry-run\n  ${PROGRAM} ${noun.noun} set ID ${field}- --cluster demo-cluster-01`,
    )
    .action(
      run(async (session, id: string, words: string[], flags: WriteFlags & TargetFlags) => {
        const targets = needTargets(flags)
        const parse = (word: string): [name: string, value: Json] => {
          const [name, text] = word.includes('=')
            ? parsePair(word, 'a field')
            : [word.replace(/-$/, ''), null]
          const key = name.replaceAll('-', '_')
          if (!Object.hasOwn(fields, key))
            throw usage(
              `clusters can set ${Object.keys(fields).join(', ')} of a ${noun.singular}, not "${name}"`,
              noun.delivery?.patches
                ? `${PROGRAM} ${noun.noun} patch ${id} --set ${word} sets a value`
                : undefined,
            )
          if (text === null && !word.endsWith('-'))
            throw usage(`${name} needs a value: ${name}=…, or ${name}- to give it up`)
          return [key, text === null ? null : parseValue(fields[key] ?? {}, text, name)]
        }
        const ref = { id, ...Object.fromEntries(words.map(parse)) }
        const operation = { op: 'assign', type: noun.name, ref, merge: true, ...targets }
        const sent = await sendBatch(session, flags, [operation])
        await printFleetWrite(session, sent, `set ${noun.name}/${id} on ${describeTargets(targets)}`)
      }),
    )
}
