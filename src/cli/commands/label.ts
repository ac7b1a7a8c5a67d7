// `NOUN label`: sets labels, and removes them, as kubectl does.
import type { Command } from 'commander'
import type { Json } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parsePair } from '../input/field-values.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite, printFleetWrite } from '../output/write-report.ts'
import { isServed, labelField, type Noun } from '../server/nouns.ts'
import { pathOf } from '../server/read-documents.ts'
import { sendBatch, sendChange } from '../server/send-change.ts'

interface Flags extends WriteFlags {
  readonly selector?: string
}

export function defineLabel(command: Command, { run }: Tools, noun: Noun): void {
  const field = labelField(noun) ?? ''
  command.argument('<id...>', 'ids, then key=value to set a label and key- to remove it')
  if (noun.cluster)
    command.option('-l, --selector <selector>', 'all that match this label selector, instead of ids')
  addWriteFlags(command, { isStaged: isServed(noun) })
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} ${noun.noun} label ID team=web wave-${noun.cluster ? `\n  ${PROGRAM} ${noun.noun} label -l environment=dev wave=1 --dry-run` : ''}`,
    )
    .action(
      run(async (session, words: string[], flags: Flags) => {
        const ids = words.filter((word) => !isLabel(word))
        const labels = Object.fromEntries(words.filter(isLabel).map(parseLabel))
        if (Object.keys(labels).length === 0)
          throw usage('which labels? Give key=value, or key- to remove one')
        if ((flags.selector === undefined) === (ids.length === 0))
          throw usage(`which ${noun.singular}? Give ids${noun.cluster ? ', or --selector' : ''}`)
        const patch = { [field]: labels }
        const [id = ''] = ids
        const of = { op: 'patch', type: noun.name, patch }
        if (ids.length === 1) {
          const request = { method: 'PATCH', path: pathOf(noun, id), body: patch } as const
          const sent = await sendChange(session, flags, { ...request, operation: { ...of, id } })
          return printDocumentWrite(session, sent, { noun, id, done: 'labeled' })
        }
        const operations =
          flags.selector === undefined
            ? ids.map((each) => ({ ...of, id: each }))
            : [{ ...of, selector: flags.selector }]
        const sent = await sendBatch(session, flags, operations)
        await printFleetWrite(session, sent, `label ${noun.name}`)
      }),
    )
}

function isLabel(word: string): boolean {
  return word.includes('=') || word.endsWith('-')
}

function parseLabel(word: string): [key: string, value: Json] {
  return word.includes('=') ? parsePair(word, 'a label') : [word.slice(0, -1), null]
}
