// `backup` and `restore`: the whole log of a store as a file, and back.
import { UsageProblem } from '../base/usage-problem.ts'
import { exportLog } from '../transfer/export-log.ts'
import type { Imported } from '../transfer/import-log.ts'
import { StreamError } from '../transfer/transfer-items.ts'
import { checkLines } from '../transfer/transfer-lines.ts'
import { type Verification, verifyLog } from '../transfer/verify-log.ts'
import { isJson, NOT_WHOLE, OUTPUT, type Print, parse, withStore } from './store-commands.ts'
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

export async function backup(args: readonly string[], around: Surroundings): Promise<number> {
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

export async function restore(args: readonly string[], around: Surroundings): Promise<number> {
  const { from, output } = parse(args, { from: TEXT, output: OUTPUT })
  const path = required('--from', from)
  const json = isJson(output)
  return reading(path, async (file) => {
    const { header, signature } = await namingSource(path, () => checkLines(file.lines()))
    if (signature || header.since > 0 || header.selector !== undefined)
      throw new UsageProblem(`${path}: is a bundle and no backup: bring it in with "bundle import"`)
    return withStore(around.env, { write: true, create: true }, async (store) => {
      const imported = await namingSource(path, () => apply(store, file, around)).catch(sayEmpty)
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
