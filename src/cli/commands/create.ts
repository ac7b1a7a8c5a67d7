// `NOUN create`: a new document; with clusters named, one that is there is brought up to date and assigned.
import type { Command } from 'commander'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { isWrapped, withoutType } from '../apply/apply-set.ts'
import { ensureAssigned } from '../apply/ensure-assigned.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { addFieldFlags, givenFor, readFieldFlags } from '../input/field-flags.ts'
import { collectIds } from '../input/option-parsers.ts'
import { readOne } from '../input/read-files.ts'
import { addTargetFlags, readTargets, type TargetFlags } from '../input/targets.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

type Flags = WriteFlags & TargetFlags & { readonly file?: string } & Readonly<Record<string, unknown>>

export function defineCreate(command: Command, { run, nouns, program }: Tools, noun: Noun): void {
  const lists = noun.cluster ? nouns.filter(({ delivery }) => delivery) : []
  command
    .argument('[id]', `id of the new ${noun.singular}; may come from the file`)
    .optionsGroup('What it is:')
    .option('-f, --file <file>', 'read it from a YAML or JSON file, - for stdin; flags change what it says')
  const fields = addFieldFlags(command, fieldsOf(noun, nouns), program, ['--cluster', '--selector'])
  for (const { noun: flag, singular } of lists) {
    command.option(`--${flag} <id>`, `give it this ${singular} (repeatable)`, collectIds)
  }
  if (noun.delivery) addTargetFlags(command.optionsGroup('Who gets it:'))
  addWriteFlags(command.optionsGroup('How to do it:'), { isStaged: noun.delivery !== undefined })
    .addHelpText('after', examples(noun))
    .action(
      run(async (session, id: string | undefined, flags: Flags) => {
        const targets = readTargets(flags)
        const given = readFieldFlags(fields, flags)
        const document = await readDocument(session, noun, id, flags)
        const assigned = Object.fromEntries(
          lists.flatMap(({ noun: flag, delivery }): [string, Json][] => {
            const ids = givenFor(`--${flag}`, flags)
            return ids ? [[delivery?.assigned_by ?? '', (ids as string[]).map((each) => ({ id: each }))]] : []
          }),
        )
        const wanted = { ...document, ...given, ...assigned }
        if (targets) return ensureAssigned(session, flags, noun, wanted, targets)
        const operation = { op: 'create', type: noun.name, document: wanted }
        const request = { method: 'POST', path: `/${noun.name}`, body: wanted, operation } as const
        const sent = await sendChange(session, flags, request)
        await printDocumentWrite(session, sent, { noun, id: String(wanted.id), done: 'created' })
      }),
    )
}

async function readDocument(
  session: Session,
  noun: Noun,
  id: string | undefined,
  { file }: Flags,
): Promise<JsonObject> {
  const read = file === undefined ? {} : await readOne(session.terminal, file)
  if (!isObject(read)) throw usage(`${file} must hold an object: the fields of the document`)
  const document = ofThisType(noun, read, file)
  const own = id ?? document.id
  if (typeof own !== 'string') throw usage('the new document needs an id: give it as an argument')
  return { ...document, id: own }
}

/** The document of a file; one that names its type must be of this type. */
function ofThisType({ name, schema }: Noun, read: JsonObject, file: string | undefined): JsonObject {
  const isOwnField = Object.hasOwn(schema.properties ?? {}, 'type') && !isWrapped(read)
  if (read.type === undefined || isOwnField) return read
  if (read.type !== name)
    throw usage(`${file} holds a document of ${JSON.stringify(read.type)}, not of ${name}`)
  return withoutType(read)
}

function examples({ noun, cluster, delivery, schema }: Noun): string {
  const required = (schema.required ?? [])
    .filter((name) => name !== 'id')
    .map((name) => ` --${name.replaceAll('_', '-')} …`)
    .join('')
  const lines = [
    `${PROGRAM} ${noun} create ID${required}`,
    `${PROGRAM} ${noun} create ID -f ${noun}.yaml --dry-run`,
    ...(delivery ? [`${PROGRAM} ${noun} create ID${required} --cluster demo-cluster-01`] : []),
    ...(cluster
      ? [`${PROGRAM} ${noun} create ID${required} --component cert-manager --namespace team-a`]
      : []),
  ]
  const note = delivery
    ? `\n\nWithout clusters, an id that exists is refused. With --cluster or --selector the ${noun} is made sure of:\ncreated, or its given fields updated, and assigned, all as one revision.`
    : ''
  return `${note}\n\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}
