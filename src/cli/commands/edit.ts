// `NOUN edit`: a document in the editor of your choice.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { stringify } from 'yaml'
import { equalJson, isObject, type Json, type JsonObject } from '../../domain/json.ts'
import { Refusal } from '../api-client.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import type { Noun } from '../nouns.ts'
import { PROGRAM, type Tools } from '../program.ts'
import { getDocument, pathOf } from '../read-documents.ts'
import { parseText } from '../read-files.ts'
import { addWriteFlags, sendChange, type WriteFlags } from '../send-change.ts'
import type { Session } from '../session.ts'
import { isInteractive } from '../terminal.ts'
import { printWritten } from '../written.ts'

export function defineEdit(command: Command, { run }: Tools, noun: Noun): void {
  command.argument('<id>', `id of the ${noun.singular}`)
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nThe editor is the one of VISUAL or EDITOR, or else vi. What is wrong with the result is written at its top, and the\neditor opens again; leaving it unchanged cancels.\n\nExamples:\n  EDITOR=nano ${PROGRAM} ${noun.noun} edit ID -m 'why'`,
    )
    .action(run((session, id: string, flags: WriteFlags) => edit(session, noun, id, flags)))
}

async function edit(session: Session, noun: Noun, id: string, flags: WriteFlags): Promise<void> {
  const { body: original, headers } = await getDocument(session, noun, id)
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-edit-'))
  const file = join(folder, `${id.replaceAll(/[^\w.-]/g, '_')}.yaml`)
  let keep = false
  try {
    let text = stringify(original, { lineWidth: 0 })
    let problems: readonly string[] = []
    for (;;) {
      writeFileSync(file, `${comment(noun, id, problems)}${text}`, { mode: 0o600 })
      openEditor(session, file)
      const saved = withoutComments(readFileSync(file, 'utf8'))
      const cancelled = saved.trim() === '' || (problems.length > 0 && saved === text)
      text = saved
      const parsed = cancelled ? undefined : await parse(text)
      if (cancelled || (parsed?.document && equalJson(parsed.document, original as Json))) {
        return session.note('Edit cancelled, nothing was changed.')
      }
      if (!parsed?.document) {
        problems = again(session, [parsed?.problem ?? ''])
        continue
      }
      try {
        const change = { method: 'PUT', path: pathOf(noun, id), body: parsed.document } as const
        const sent = await sendChange(session, flags, {
          ...change,
          headers: { 'if-match': String(headers.etag) },
        })
        return await printWritten(session, sent, { noun, id, done: 'edited' })
      } catch (error) {
        if (error instanceof Refusal && error.code === 'validation_error') {
          problems = again(session, [error.message, ...error.details.slice(0, -1)])
          continue
        }
        keep = true
        session.note(`your edit is kept in ${file}`)
        throw error
      }
    }
  } finally {
    if (!keep) rmSync(folder, { recursive: true, force: true })
  }
}

/** Without anybody to correct it, a mistake is the end. */
function again(session: Session, problems: readonly string[]): readonly string[] {
  if (isInteractive(session.terminal)) return problems
  throw new Failure(EXIT.refused, problems[0] ?? '', { details: problems.slice(1) })
}

function comment(noun: Noun, id: string, problems: readonly string[]): string {
  const lines = [
    `${noun.name}/${id}: save to apply, leave unchanged or empty to cancel.`,
    ...(problems.length > 0 ? ['', 'It was refused:', ...problems.map((problem) => `- ${problem}`)] : []),
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

function openEditor({ terminal }: Session, file: string): void {
  const editor = terminal.env.VISUAL || terminal.env.EDITOR || 'vi'
  // As git does: the setting may hold arguments.
  const { status, error } = spawnSync('sh', ['-c', `${editor} "$1"`, editor, file], { stdio: 'inherit' })
  if (error || status !== 0)
    throw usage(`the editor "${editor}" failed: nothing was changed. Set EDITOR to one that works`)
}
