// `copy`: the log of one store into another one.
import { UsageProblem } from '../base/usage-problem.ts'
import type { Store } from '../store/store.ts'
import { exportLog } from '../transfer/export-log.ts'
import { type Imported, importLog } from '../transfer/import-log.ts'
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
import { namingSource, progressOn, required, type Surroundings, TEXT } from './transfer-streams.ts'

export async function copy(args: readonly string[], around: Surroundings): Promise<number> {
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
      const copied = await namingSource('the source', () => copyRounds(sourceStore, targetStore, around))
      return printCopied(sourceStore, copied, await verifyLog(targetStore), json, around.print)
    })
  })
}

/** Rounds of copying, at most: the source may be written to meanwhile. */
const MAX_ROUNDS = 5

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

/** The environment with the store that the command line names instead. */
function at({ env }: Surroundings, url: string): Environment {
  return { ...env, DATABASE_URL: url, STORE_BACKEND: undefined }
}
