// `NOUN edit`: a document in the editor of your choice.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { equalJson, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import { parseText } from '../input/read-files.ts'
import { addWriteFlags, checkWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { toYaml } from '../output/print.ts'
import { isInteractive } from '../output/terminal.ts'
import { printDocumentWrite } from '../output/write-report.ts'
import { isServed, type Noun } from '../server/nouns.ts'
import { getDocument, pathOf, revisionOf } from '../server/read-documents.ts'
import { Refusal } from '../server/refusal.ts'
import { type Sent, sendChange } from '../server/send-change.ts'
import type { Session } from '../session.ts'

export function defineEdit(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id>', `id of the ${noun.singular}`)
  addWriteFlags(command, { isStaged: isServed(noun) })
    .addHelpText(
      'after',
      `\nThe editor is the one of VISUAL or EDITOR, or else vi. What is wrong with the result is written at its top, and the\neditor opens again; leaving it unchanged cancels.\n\nExamples:\n  EDITOR=nano ${PROGRAM} ${noun.noun} edit ID -m 'why'`,
    )
    .action(run((session, id: string, flags: WriteFlags) => edit(session, noun, id, flags)))
}

async function edit(session: Session, noun: Noun, id: string, flags: WriteFlags): Promise<void> {
  checkWriteFlags(flags)
  let { body: original, headers } = await getDocument(session, noun, id)
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-edit-'))
  const file = join(folder, `${id.replaceAll(/[^\w.-]/g, '_')}.yaml`)
  const first = await toYaml(original)
  let text = first
  let problems: readonly string[] = []
  const save = (document: JsonObject): Promise<Sent> =>
    sendChange(session, flags, {
      method: 'PUT',
      path: pathOf(noun, id),
      headers: { 'if-match': String(headers.etag) },
      body: document,
      operation: { op: 'replace', type: noun.name, id, document, if_revision: revisionOf(headers) },
    })
  try {
    for (;;) {
      const saved = openEditor(session, file, comment(noun, id, problems), text)
      const isCancelled = saved.trim() === '' || (problems.length > 0 && saved === text)
      text = saved
      const { document, problem } = isCancelled ? { document: original } : await parse(text)
      if (document && equalJson(document, original)) {
        session.note('Edit cancelled, nothing was changed.')
        break
      }
      const outcome = document ? await trySaving(() => save(document)) : [problem ?? '']
      if (outcome === CHANGED && document) {
        const newer = await getDocument(session, noun, id)
        const merged = mergeEdits(original, document, newer.body)
        original = newer.body
        headers = newer.headers
        text = await toYaml(merged.document)
        problems = [
          'somebody else has changed it meanwhile: this is the newer version with your changes in it',
          ...merged.conflicts.map((field) => `${field}: changed by both; yours is kept below`),
        ]
        if (!isInteractive(session.terminal))
          throw new Failure(EXIT.refused, problems[0] ?? '', { details: problems.slice(1) })
        continue
      }
      if (!Array.isArray(outcome)) {
        await printDocumentWrite(session, outcome as Sent, { noun, id, done: 'edited' })
        break
      }
      problems = outcome
      // Without a terminal nobody can correct the document.
      if (!isInteractive(session.terminal)) {
        throw new Failure(EXIT.refused, problems[0] ?? '', { details: problems.slice(1) })
      }
    }
  } catch (error) {
    if (text === first) rmSync(folder, { recursive: true, force: true })
    else session.warn(`your edit is kept in ${file}: ${PROGRAM} ${noun.noun} update ${id} -f ${file}`)
    throw error
  }
  rmSync(folder, { recursive: true, force: true })
}

/** Somebody else was faster. */
const CHANGED = 'changed'

/** Returns what was sent, or the problems of the document. */
async function trySaving(save: () => Promise<Sent>): Promise<Sent | readonly string[] | typeof CHANGED> {
  try {
    return await save()
  } catch (error) {
    if (error instanceof Refusal && error.code === 'precondition_failed') return CHANGED
    if (!(error instanceof Refusal) || error.code !== 'validation_error') throw error
    return [error.message, ...error.details.slice(0, -1)]
  }
}

/** The newer version with the fields that the edit has changed. */
function mergeEdits(
  original: JsonObject,
  edited: JsonObject,
  newer: JsonObject,
): { readonly document: JsonObject; readonly conflicts: readonly string[] } {
  const names = [...new Set([...Object.keys(original), ...Object.keys(edited)])]
  const own = names.filter((name) => !isSame(original[name], edited[name]))
  const kept = Object.entries(newer).filter(([name]) => !own.includes(name) || Object.hasOwn(edited, name))
  const changed = own.filter((name) => Object.hasOwn(edited, name)).map((name) => [name, edited[name]])
  const conflicts = own.filter(
    (name) => !isSame(original[name], newer[name]) && !isSame(edited[name], newer[name]),
  )
  return { document: { ...Object.fromEntries(kept), ...Object.fromEntries(changed) }, conflicts }
}

function isSame(one: Json | undefined, other: Json | undefined): boolean {
  return equalJson(one ?? null, other ?? null)
}

function comment(noun: Noun, id: string, problems: readonly string[]): string {
  const lines = [
    `${noun.name}/${id}: save to apply, leave unchanged or empty to cancel.`,
    ...(problems.length > 0 ? ['', 'It was not saved:', ...problems.map((problem) => `- ${problem}`)] : []),
  ]
  return `${lines.map((line) => `# ${line}`.trimEnd()).join('\n')}\n#\n`
}

function withoutComments(text: string): string {
  return text.replace(/^(?:#.*\n)*/, '')
}

async function parse(text: string): Promise<{ document?: JsonObject; problem?: string }> {
  try {
    const [found, ...more] = await parseText(text, 'the document')
    if (isObject(found?.value) && more.length === 0) return { document: found.value }
    return { problem: 'there must be one document, an object' }
  } catch (error) {
    return { problem: (error as Error).message }
  }
}

/** Opens the editor on a text; returns what it saved. */
function openEditor({ terminal }: Session, file: string, head: string, text: string): string {
  writeFileSync(file, `${head}${text}`, { mode: 0o600 })
  const editor = terminal.env.VISUAL || terminal.env.EDITOR || 'vi'
  // A shell runs the editor, as with git: the variable may hold arguments.
  const { status, error } = spawnSync('sh', ['-c', `${editor} "$1"`, editor, file], { stdio: 'inherit' })
  if (error || status !== 0)
    throw usage(`the editor "${editor}" failed: nothing was changed. Set EDITOR to one that works`)
  return withoutComments(readFileSync(file, 'utf8'))
}
