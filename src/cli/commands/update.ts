// `NOUN update`: some fields of a document, by path.
import type { Command } from 'commander'
import { isObject, type Json, type JsonObject, pointer } from '../../base/json.ts'
import { readDocument } from '../apply/read-document.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { dropOperation, overridableFields } from '../input/drop-overrides.ts'
import { addFieldFlags, readFieldFlags } from '../input/field-flags.ts'
import {
  applySettings,
  mergePatchOf,
  parsePath,
  parseSetting,
  parseValue,
  type Setting,
  schemaAt,
} from '../input/field-values.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printDocumentWrite, printFleetWrite } from '../output/write-report.ts'
import { fieldsOf, isServed, type Noun } from '../server/nouns.ts'
import { getDocument, pathOf, revisionOf } from '../server/read-documents.ts'
import { Refusal } from '../server/refusal.ts'
import { type Sent, sendBatch, sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

interface Flags extends WriteFlags, Readonly<Record<string, unknown>> {
  readonly selector?: string
  readonly dropOverrides?: boolean
  readonly file?: string
}

const TRIES = 5

export function defineUpdate(command: Command, { run, nouns, program }: Tools, noun: Noun): void {
  // --set and --unset are applied in the order in which they are given.
  const settings: Setting[] = []
  command
    .argument('[id]', `id of the ${noun.singular}; may come from the file`)
    .option(
      '--set <path=value>',
      'set a field (repeatable): labels.team=web, subjects[0].name=ann',
      (text) => {
        const { path, value } = parseSetting(text, '--set')
        const flag = `--set ${text.slice(0, text.length - value.length - 1)}`
        settings.push({ path, value: parseValue(schemaAt(noun.schema, path), value, flag) })
      },
    )
    .option('--unset <path>', 'remove a field, or give it its default (repeatable)', (text) => {
      settings.push({ path: parsePath(text, '--unset'), value: null })
    })
    .option(
      '-f, --file <file>',
      'make the fields that this YAML or JSON file names what it says; - for stdin',
    )
  if (noun.cluster)
    command.option('-l, --selector <selector>', 'all that match this label selector, instead of one')
  if (noun.delivery)
    command.option(
      '--drop-overrides',
      'also give up what clusters set themselves for these fields, so that all have the new value',
    )
  const fields = addFieldFlags(command.optionsGroup('Its fields:'), fieldsOf(noun, nouns), program)
  addWriteFlags(command.optionsGroup('How to do it:'), { isStaged: isServed(noun) })
    .addHelpText('after', examples(noun))
    .action(
      run(async (session, given: string | undefined, flags: Flags) => {
        const read =
          flags.file === undefined ? undefined : await readDocument(session.terminal, noun, flags.file)
        const id = given ?? (flags.selector === undefined ? read?.id : undefined)
        if (read && id !== undefined && read.id !== undefined && read.id !== id)
          throw usage(`${flags.file} holds "${read.id}", not "${id}"`)
        const { id: _id, ...named } = read?.document ?? {}
        const fromFile = Object.entries(named).map(([name, value]): Setting => ({ path: [name], value }))
        settings.unshift(...fromFile, ...settingsOf(readFieldFlags(fields, flags)))
        checkSettings(settings)
        if ((id === undefined) === (flags.selector === undefined)) {
          throw usage(`which ${noun.singular}? Give its id${noun.cluster ? ', or --selector' : ''}`)
        }
        if (id === undefined) return updateMany(session, noun, flags, settings)
        if (flags.dropOverrides) return updateAndDrop(session, noun, id, flags, settings)
        const sent = await updateOne(session, noun, id, flags, settings)
        await printDocumentWrite(session, sent, { noun, id, done: 'configured' })
      }),
    )
}

/** Flags of fields as settings: pairs of a map are set one by one. */
function settingsOf(given: JsonObject): Setting[] {
  return Object.entries(given).flatMap(([name, value]): Setting[] =>
    isObject(value)
      ? Object.entries(value).map(([key, each]) => ({ path: [name, key], value: each }))
      : [{ path: [name], value }],
  )
}

function checkSettings(settings: readonly Setting[]): void {
  if (settings.length === 0)
    throw usage('what is to be changed? Give --set path=value, --unset path, a flag of a field, or --file')
  const seen = new Map<string, Json>()
  for (const { path, value } of settings) {
    const key = JSON.stringify(path)
    const earlier = seen.get(key)
    if (earlier !== undefined && (earlier === null) !== (value === null)) {
      throw usage(`${path.join('.')} is both set and unset`)
    }
    seen.set(key, value)
  }
}

async function updateMany(
  session: Session,
  noun: Noun,
  flags: Flags,
  settings: readonly Setting[],
): Promise<void> {
  const patch = mergePatchOf(settings) ?? wholeFields(settings)
  if (!patch) throw usage('a place in a list can be set on one document at a time, not with --selector')
  const operation = { op: 'patch', type: noun.name, selector: flags.selector as string, patch }
  const sent = await sendBatch(session, flags, [operation])
  await printFleetWrite(session, sent, `${noun.name} (${flags.selector})`)
}

/** Changes a definition and gives up the overrides of the same fields, as one revision. */
async function updateAndDrop(
  session: Session,
  noun: Noun,
  id: string,
  flags: Flags,
  settings: readonly Setting[],
): Promise<void> {
  const patch = mergePatchOf(settings) ?? wholeFields(settings)
  if (!patch) throw usage('a place in a list cannot be set together with --drop-overrides')
  const given = new Set(settings.map(({ path }) => path[0]))
  const fields = overridableFields(noun).filter((field) => given.has(field))
  if (fields.length === 0)
    throw usage(
      `--drop-overrides: clusters can override ${overridableFields(noun).join(', ')}, and none of these is set`,
    )
  const operations = [
    { op: 'patch', type: noun.name, id, patch },
    {
      ...dropOperation(noun, id, fields),
      selector: `overrides.${noun.name}=${id}`,
      // Where nobody has an override there is nothing to give up.
      allow_empty: true,
    },
  ]
  const sent = await sendBatch(session, flags, operations)
  await printFleetWrite(session, sent, `update ${noun.name}/${id}`)
}

/** A JSON patch that replaces whole fields; undefined when a setting is of something else. */
function wholeFields(settings: readonly Setting[]): Json | undefined {
  if (settings.some(({ path, value }) => path.length > 1 || value === null)) return undefined
  return settings.map(({ path, value }) => ({ op: 'add', path: pointer('', path[0] ?? ''), value }))
}

/** Sends a merge patch; a place in a list is changed on the document that was read, with optimistic locking. */
async function updateOne(
  session: Session,
  noun: Noun,
  id: string,
  flags: Flags,
  settings: readonly Setting[],
): Promise<Sent> {
  const path = pathOf(noun, id)
  const merge = mergePatchOf(settings)
  const of = { type: noun.name, id }
  if (merge) {
    const operation = { op: 'patch', ...of, patch: merge }
    return sendChange(session, flags, { method: 'PATCH', path, body: merge, operation })
  }
  for (let attempt = 1; ; attempt++) {
    const { body, headers } = await getDocument(session, noun, id)
    const changed = applySettings(body, settings)
    const ifMatch = { 'if-match': String(headers.etag) }
    try {
      return await sendChange(session, flags, {
        method: 'PUT',
        path,
        headers: ifMatch,
        body: changed,
        operation: { op: 'replace', ...of, document: changed, if_revision: revisionOf(headers) },
      })
    } catch (error) {
      const isConflict = error instanceof Refusal && error.code === 'precondition_failed'
      if (!isConflict || attempt === TRIES) throw error
    }
  }
}

function examples({ noun, cluster, delivery }: Noun): string {
  const lines = [
    ...(cluster
      ? [
          `${PROGRAM} ${noun} update prod-eu-01 --set labels.wave=2 --set deletion_protection=true`,
          `${PROGRAM} ${noun} update --selector environment=dev --set labels.wave=1 --dry-run`,
        ]
      : []),
    ...(delivery?.patches
      ? [`${PROGRAM} ${noun} update grafana --set oci_tag=v1.0.1 -m 'image fix' --dry-run`]
      : []),
    `${PROGRAM} ${noun} update ID --set 'labels.app\\.kubernetes\\.io/part-of=platform'`,
    `${PROGRAM} ${noun} update ID --unset labels.team`,
  ]
  return `\nValues take the type that the field has. Keys with dots: a\\.b or ["a.b"].\n\nExamples:\n${lines.map((line) => `  ${line}`).join('\n')}`
}
