// Commands that move what a store holds: into another store, into backups and back, and in signed bundles.
import type { KeyObject } from 'node:crypto'
import type { Writable } from 'node:stream'
import { UsageProblem } from '../base/usage-problem.ts'
import { parseSelector } from '../domain/access/selector.ts'
import type { Types } from '../domain/types/resource-type.ts'
import type { Store } from '../store/store.ts'
import {
  checkSignature,
  keyId,
  readPrivateKey,
  readPublicKey,
  signEnd,
  writeKeyPair,
} from '../transfer/bundle-keys.ts'
import { exportLog } from '../transfer/export-log.ts'
import { type Imported, importLog } from '../transfer/import-log.ts'
import type { Selection } from '../transfer/partial-log.ts'
import type { Progress } from '../transfer/replication-status.ts'
import { type LinesFile, openLines, writeLines } from '../transfer/transfer-files.ts'
import { type End, StreamError } from '../transfer/transfer-items.ts'
import { type Checked, checkLines } from '../transfer/transfer-lines.ts'
import { type Verification, verifyLog } from '../transfer/verify-log.ts'
import {
  type Environment,
  isJson,
  NOT_WHOLE,
  OUTPUT,
  type Print,
  parse,
  withStore,
} from './store-commands.ts'

export interface Surroundings {
  readonly env: Environment
  /** Loaded only where a selector has to be parsed. */
  readonly types: () => Types
  readonly now: () => Date
  readonly stdout: Writable
  /** `print` writes a line to the standard output, `tell` to the standard error. */
  readonly print: Print
  readonly tell: Print
}

const TEXT = { type: 'string' } as const
/** Rounds of copying, at most: the source may be written to meanwhile. */
const MAX_ROUNDS = 5
const TELL_EVERY_MS = 3000

/** Runs a command and returns its exit code; undefined when there is no such command. */
export async function runTransferCommand(
  name: string,
  args: readonly string[],
  around: Surroundings,
): Promise<number | undefined> {
  try {
    if (name === 'copy') return await copy(args, around)
    if (name === 'backup') return await backup(args, around)
    if (name === 'restore') return await restore(args, around)
    if (name === 'bundle') return await bundle(args, around)
    return undefined
  } catch (error) {
    if (!(error instanceof StreamError) || !error.isDamaged) throw error
    around.tell(`flux-resourceset: ${error.message}`)
    return NOT_WHOLE
  }
}

async function copy(args: readonly string[], around: Surroundings): Promise<number> {
  const { from, to, output } = parse(args, { from: TEXT, to: TEXT, output: OUTPUT })
  const [source, target] = [required('--from', from), required('--to', to)]
  if (source === target) throw new UsageProblem('--from and --to are the same store')
  const json = isJson(output)
  return withStore(at(around, source), { write: false }, async (sourceStore) => {
    const { revision: available } = await sourceStore.head()
    return withStore(at(around, target), { write: true, create: true }, async (targetStore) => {
      const { revision: there } = await targetStore.head()
      if (there > available)
        throw new UsageProblem(
          `the target is at revision ${there} and the source at ${available}: it is not a copy of that`,
        )
      const copied = await explained('the source', () => copyRounds(sourceStore, targetStore, around))
      return printCopied(sourceStore, copied, await verifyLog(targetStore), json, around.print)
    })
  })
}

/**
 * Copies in rounds, since the source may be in use: each round copies what was written during the one before. It ends
 * when a round leaves nothing to copy, or after `MAX_ROUNDS`.
 */
async function copyRounds(source: Store, target: Store, { now, tell }: Surroundings): Promise<Imported> {
  let all: Imported | undefined
  for (let round = 0; round < MAX_ROUNDS; round++) {
    const { revision: since } = await target.head()
    const lines = exportLog(source, { since, includeAuxiliary: true, now: now() })
    const imported = await importLog(target, lines, { progress: progressOn(tell, 'copied') })
    all = {
      ...imported,
      from: all?.from ?? imported.from,
      revisions: imported.revisions + (all?.revisions ?? 0),
    }
    if ((await source.head()).revision === imported.head.revision) break
  }
  return all as Imported
}

async function printCopied(
  source: Store,
  { revisions, initialDocuments, answers, uses, head }: Imported,
  verification: Verification,
  json: boolean,
  print: Print,
): Promise<number> {
  const { documents, verified, problems } = verification
  const { revision: now } = await source.head()
  const isSame = head.hash === verification.hash && (await source.hashOf(head.revision)) === head.hash
  const isVerified = verified && isSame
  if (json) {
    const figures = { revisions, planted: initialDocuments, documents, answers, uses }
    print(JSON.stringify({ verified: isVerified, ...head, source_revision: now, ...figures, problems }))
  } else {
    print(`copied ${revisions} revisions, up to revision ${head.revision}, with ${documents} documents`)
    print(`hash of revision ${head.revision}: ${head.hash || 'none'}`)
    if (!isVerified) print('not verified:')
    for (const problem of problems) print(`  ${problem}`)
    print(
      now === head.revision
        ? 'the target is where the source is: stop what writes there, and run this once more before you use it'
        : `the source went on to revision ${now}: stop what writes there, and run this again for the rest`,
    )
  }
  return isVerified ? 0 : NOT_WHOLE
}

async function backup(args: readonly string[], around: Surroundings): Promise<number> {
  const { to, output } = parse(args, { to: TEXT, output: OUTPUT })
  const path = required('--to', to)
  const json = isJson(output)
  const { now, stdout, tell } = around
  const say = path === '-' ? tell : around.print
  const written = await withStore(around.env, { write: false }, (store) =>
    write(
      path,
      exportLog(store, { since: 0, includeAuxiliary: true, now: now(), progress: progressOn(tell, 'read') }),
      stdout,
    ),
  )
  const { revision, hash, documents } = written.end
  if (json) say(JSON.stringify({ file: path, revision, hash, documents, bytes: written.bytes }))
  else {
    say(`backed up revision ${revision} with ${documents} documents: ${written.bytes} bytes`)
    say(`hash of revision ${revision}: ${hash || 'none'}`)
  }
  return 0
}

async function restore(args: readonly string[], around: Surroundings): Promise<number> {
  const { from, output } = parse(args, { from: TEXT, output: OUTPUT })
  const path = required('--from', from)
  const json = isJson(output)
  return reading(path, async (file) => {
    const { header, signature } = await explained(path, () => checkLines(file.lines()))
    if (signature || header.since > 0 || header.selector !== undefined)
      throw new UsageProblem(`${path}: is a bundle and no backup: bring it in with "bundle import"`)
    return withStore(around.env, { write: true, create: true }, async (store) => {
      const imported = await explained(path, () => apply(store, file, around)).catch(sayEmpty)
      return printRestored(imported, await verifyLog(store), json, around.print)
    })
  })
}

function sayEmpty(error: unknown): never {
  if (!(error instanceof StreamError) || error.isDamaged) throw error
  throw new UsageProblem(
    `${error.message}. A backup goes into an empty store: name one in DATABASE_URL, or move the one that is there away`,
  )
}

function printRestored(
  { from, head, revisions }: Imported,
  { verified, hash, documents, problems }: Verification,
  json: boolean,
  print: Print,
): number {
  const isVerified = verified && hash === head.hash
  if (json) {
    print(JSON.stringify({ verified: isVerified, ...head, documents, from: from.revision, problems }))
  } else {
    const start = from.revision > 0 ? `, going on from revision ${from.revision}` : ''
    print(`restored revision ${head.revision} with ${documents} documents: ${revisions} revisions${start}`)
    print(`hash of revision ${head.revision}: ${head.hash || 'none'}`)
    if (!isVerified) print('not verified:')
    for (const problem of problems) print(`  ${problem}`)
  }
  return isVerified ? 0 : NOT_WHOLE
}

async function bundle([command, ...args]: readonly string[], around: Surroundings): Promise<number> {
  if (command === 'export') return exportBundle(args, around)
  if (command === 'import') return importBundle(args, around)
  if (command === 'keygen') return keygen(args, around)
  throw new UsageProblem(
    `there is no command "bundle ${command ?? ''}": export, import or keygen. See --help`,
  )
}

async function exportBundle(args: readonly string[], around: Surroundings): Promise<number> {
  const flags = { to: TEXT, key: TEXT, since: TEXT, selector: TEXT, output: OUTPUT }
  const { to, key: keyFile, since: first, selector, output } = parse(args, flags)
  const path = required('--to', to)
  const json = isJson(output)
  const key = readPrivateKey(required('--key', keyFile))
  const since = parseRevision(first)
  const selection = selector === undefined ? undefined : parseSelection(around.types(), String(selector))
  const { now, stdout, tell } = around
  const say = path === '-' ? tell : around.print
  const { end, bytes } = await withStore(around.env, { write: false }, (store) => {
    const options = { since, selection, now: now(), progress: progressOn(tell, 'read') }
    return write(path, signed(exportLog(store, options), key), stdout)
  })
  const { revision, hash } = end
  if (json) say(JSON.stringify({ file: path, since, revision, hash, bytes, key: keyId(key) }))
  else {
    say(`bundled what came after revision ${since}, up to revision ${revision}: ${bytes} bytes`)
    say(`hash of revision ${revision}: ${hash || 'none'}`)
    say(`signed with the key ${keyId(key)}`)
  }
  return 0
}

async function* signed(lines: AsyncIterable<string>, key: KeyObject): AsyncGenerator<string> {
  let last = ''
  for await (const line of lines) {
    last = line
    yield line
  }
  yield JSON.stringify({ signature: signEnd(key, last) })
}

async function importBundle(args: readonly string[], around: Surroundings): Promise<number> {
  const flags = { from: TEXT, key: { ...TEXT, multiple: true }, output: OUTPUT } as const
  const { from, key: keyFiles, output } = parse(args, flags)
  const path = required('--from', from)
  const json = isJson(output)
  if (keyFiles === undefined) throw new UsageProblem('--key is required: see --help')
  const keys = (keyFiles as unknown as readonly string[]).map(readPublicKey)
  return reading(path, async (file) => {
    const checked = await explained(path, () => checkLines(file.lines()))
    const key = await explained(path, async () => checkSignature(keys, checked))
    const create = checked.header.since === 0
    const imported = await withStore(around.env, { write: true, create }, (store) =>
      explained(path, () => apply(store, file, around)),
    )
    printImported(checked, imported, key, json, around.print)
    return 0
  })
}

function printImported(
  { end }: Checked,
  { from, head, revisions, known }: Imported,
  key: string,
  json: boolean,
  print: Print,
): void {
  if (json) {
    print(JSON.stringify({ from: from.revision, ...head, revisions, known, source_hash: end.hash, key }))
  } else {
    print(
      revisions > 0 || head.revision > from.revision
        ? `imported revisions ${from.revision + 1} to ${head.revision}`
        : `nothing new: this store is at revision ${head.revision} already`,
    )
    print(`hash of revision ${head.revision}: ${head.hash || 'none'}`)
    print(`signed with the key ${key}`)
  }
}

function keygen(args: readonly string[], { print }: Surroundings): number {
  const { to } = parse(args, { to: TEXT })
  const { privateKey, publicKey } = writeKeyPair(required('--to', to))
  print(`${privateKey}: signs bundles; keep it where they are made`)
  print(`${publicKey}: checks bundles; give it to those who import them`)
  return 0
}

function required(flag: string, value: string | boolean | undefined): string {
  if (typeof value === 'string' && value !== '') return value
  throw new UsageProblem(`${flag} is required: see --help`)
}

function parseRevision(text: string | boolean | undefined): number {
  if (text === undefined) return 0
  if (/^\d{1,15}$/.test(String(text))) return Number(text)
  throw new UsageProblem(`--since must be a revision such as 120, not "${text}"`)
}

function parseSelection(types: Types, text: string): Selection {
  const parsed = parseSelector(types, text)
  if (!parsed.ok) throw new UsageProblem(`--selector ${parsed.message}`)
  return { selector: parsed.selector, types }
}

/** The environment with the store that the command line names instead. */
function at({ env }: Surroundings, url: string): Environment {
  return { ...env, DATABASE_URL: url, STORE_BACKEND: undefined }
}

async function reading<T>(path: string, use: (file: LinesFile) => Promise<T>): Promise<T> {
  const file = await openLines(path)
  try {
    return await use(file)
  } finally {
    await file.close()
  }
}

/** Names the source of the lines in errors about them. */
async function explained<T>(from: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof StreamError)) throw error
    throw new StreamError(`${from}: ${error.message}`, error)
  }
}

function apply(store: Store, file: LinesFile, { tell }: Surroundings): Promise<Imported> {
  return importLog(store, file.lines(), { progress: progressOn(tell, 'written') })
}

/** Writes lines; returns the content of their `end` line, and how many bytes were written. */
async function write(
  path: string,
  lines: AsyncIterable<string>,
  stdout: Writable,
): Promise<{ readonly end: End; readonly bytes: number }> {
  let end: End | undefined
  async function* seen(): AsyncGenerator<string> {
    for await (const line of lines) {
      if (line.startsWith('{"end":')) end = JSON.parse(line).end
      yield line
    }
  }
  const bytes = await writeLines(path, seen(), stdout)
  return { end: end as End, bytes }
}

/** Reports the progress of long work every few seconds. */
function progressOn(tell: Print, done: string): Progress {
  let told = performance.now()
  return (revision, until) => {
    if (performance.now() - told < TELL_EVERY_MS) return
    told = performance.now()
    tell(`${done} up to revision ${revision} of ${until}`)
  }
}
