// `bundle`: signed parts of a log, exported and imported, and the keys for them.
import type { KeyObject } from 'node:crypto'
import { UsageProblem } from '../base/usage-problem.ts'
import { parseSelector } from '../domain/access/selector.ts'
import type { Types } from '../domain/types/resource-type.ts'
import {
  checkSignature,
  keyId,
  readPrivateKey,
  readPublicKey,
  signEnd,
  writeKeyPair,
} from '../transfer/bundle-keys.ts'
import { exportLog } from '../transfer/export-log.ts'
import type { Imported } from '../transfer/import-log.ts'
import type { Selection } from '../transfer/partial-log.ts'
import { type Checked, checkLines } from '../transfer/transfer-lines.ts'
import { isJson, OUTPUT, type Print, parse, withStore } from './store-commands.ts'
import {
  apply,
  namingSource,
  progressOn,
  reading,
  required,
  type Surroundings,
  TEXT,
  write,
} from './transfer-streams.ts'

export async function bundle([command, ...args]: readonly string[], around: Surroundings): Promise<number> {
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
    const checked = await namingSource(path, () => checkLines(file.lines()))
    const key = await namingSource(path, async () => checkSignature(keys, checked))
    const create = checked.header.since === 0
    const imported = await withStore(around.env, { write: true, create }, (store) =>
      namingSource(path, () => apply(store, file, around)),
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
