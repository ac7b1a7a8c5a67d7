// `NOUN create`: a new document; with clusters named, one that is there is brought up to date and assigned.
import type { Command } from 'commander'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { ensureAssigned } from '../apply/ensure-assigned.ts'
import { readDocument } from '../apply/read-document.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import {
  addFieldFlags,
  addReferenceFlags,
  exampleFlags,
  givenFor,
  inFieldFlags,
  readFieldFlags,
  referenceOf,
} from '../input/field-flags.ts'
import { collectIds } from '../input/option-parsers.ts'
import { addTargetFlags, readTargets, type TargetFlags } from '../input/targets.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import { fieldsOf, type Noun } from '../server/nouns.ts'
import { getDocument } from '../server/read-documents.ts'
import { Refusal } from '../server/refusal.ts'
import { sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

type Flags = WriteFlags &
  TargetFlags & { readonly file?: string; readonly like?: string } & Readonly<Record<string, unknown>>

export function defineCreate(command: Command, { run, nouns, program }: Tools, noun: Noun): void {
  const lists = noun.cluster ? nouns.filter(({ delivery }) => delivery) : []
  command
    .argument('[id]', `id of the new ${noun.singular}; may come from the file`)
    .optionsGroup('What it is:')
    .option('-f, --file <file>', 'read it from a YAML or JSON file, - for stdin; flags change what it says')
  const fields = addFieldFlags(command, fieldsOf(noun, nouns), program, {
    later: ['--cluster', '--selector', '--like'],
    required: (noun.schema.required ?? []).filter((name) => name !== nameField(noun)),
  })
  for (const { noun: flag, singular } of lists) {
    command.option(`--${flag} <id>`, `give it this ${singular} (repeatable)`, collectIds)
  }
  if (noun.cluster)
    command.option('--like <id>', 'as this one is, with all that it has; flags change what differs')
  if (noun.delivery) addTargetFlags(command.optionsGroup('Who gets it:'))
  const references = noun.delivery ? addReferenceFlags(command, program, noun) : []
  addWriteFlags(command.optionsGroup('How to do it:'), { isStaged: noun.delivery !== undefined })
    .addHelpText('after', examples(noun))
    .action(
      run(async (session, id: string | undefined, flags: Flags) => {
        const targets = readTargets(flags)
        const given = readFieldFlags(fields, flags)
        const document = await beginning(session, noun, id, flags)
        const assigned = Object.fromEntries(
          lists.flatMap(({ noun: flag, delivery }): [string, Json][] => {
            const ids = givenFor(`--${flag}`, flags)
            return ids ? [[delivery?.assigned_by ?? '', (ids as string[]).map((each) => ({ id: each }))]] : []
          }),
        )
        const wanted = { ...joined(document, given), ...assigned }
        const how = referenceOf(readFieldFlags(references, flags))
        if (targets) return ensureAssigned(session, flags, noun, wanted, targets, how)
        if (Object.keys(how).length > 0)
          throw usage('which clusters? Give --cluster ID or --selector SELECTOR')
        const operation = { op: 'create', type: noun.name, document: wanted }
        const request = { method: 'POST', path: `/${noun.name}`, body: wanted, operation } as const
        const sent = await sendChange(session, flags, request).catch((error: unknown) => {
          throw error instanceof Refusal && flags.file === undefined
            ? error.reworded(inFieldFlags(fields))
            : error
        })
        await printDocumentWrite(session, sent, { noun, id: String(wanted.id), done: 'created' })
        if (noun.cluster && sent.response && session.terminal.stderr.isTTY)
          session.note(`next: ${PROGRAM} bootstrap ${wanted.id} --with-token | kubectl apply -f -`)
      }),
    )
}

/** The document that the new one begins as: from a file, or like another. */
async function beginning(
  session: Session,
  noun: Noun,
  id: string | undefined,
  { file, like }: Flags,
): Promise<JsonObject> {
  const read = file === undefined ? undefined : await readDocument(session.terminal, noun, file)
  const own = id ?? read?.id
  if (own === undefined) throw usage('the new document needs an id: give it as an argument')
  const model = like === undefined ? {} : await withoutIdentity(session, noun, like)
  const name = nameField(noun)
  return { ...(name !== undefined && { [name]: own }), ...model, ...read?.document, id: own }
}

async function withoutIdentity(session: Session, noun: Noun, like: string): Promise<JsonObject> {
  const { body } = await getDocument(session, noun, like)
  const others = Object.entries(body).filter(
    ([name]) => name !== 'id' && name !== nameField(noun) && name !== noun.cluster?.dns,
  )
  return Object.fromEntries(others) as JsonObject
}

/** The field of clusters that names them, and mostly says the same as the id. */
function nameField({ cluster, schema }: Noun): string | undefined {
  return cluster && schema.properties?.cluster_name ? 'cluster_name' : undefined
}

/** Pairs are added to those that are there; other fields are replaced. */
function joined(document: JsonObject, given: JsonObject): JsonObject {
  const fields = Object.entries(given).map(([name, value]): [string, Json] => {
    const known = document[name]
    return [name, isObject(known) && isObject(value) ? { ...known, ...value } : value]
  })
  return { ...document, ...Object.fromEntries(fields) }
}

function examples({ noun, cluster, delivery, schema }: Noun): string {
  const required = exampleFlags(
    Object.entries(schema.properties ?? {}).filter(
      ([name]) => name !== 'id' && name !== 'cluster_name' && schema.required?.includes(name),
    ),
  )
  const lines = [
    `${PROGRAM} ${noun} create ID${required}`,
    `${PROGRAM} ${noun} create ID -f ${noun}.yaml --dry-run`,
    ...(delivery ? [`${PROGRAM} ${noun} create ID${required} --cluster demo-cluster-01`] : []),
    ...(cluster
      ? [`${PROGRAM} ${noun} create ID${required} --component cert-manager --namespace team-a`]
      : []),
  ]
  const note = delivery
    ? `\n\nWithout clusters, an existing id is refused. With --cluster or --selector the ${noun} is created, or its given fields\nare updated, and it is assigned, all in one revision.`
    : ''
  return `${note}\n\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}
