// Commands that open the store directly, not through the API: they verify the log and prune its older part.
import { parseArgs } from 'node:util'
import { parseTime } from '../base/time.ts'
import { UsageProblem } from '../base/usage-problem.ts'
import { parseStoreConfig } from '../config/database-url.ts'
import { migrateStore, openStore as openAt } from '../store/open-store.ts'
import type { Store } from '../store/store.ts'
import { pruneLog, type Verification, verifyLog } from '../transfer/verify-log.ts'

export type Environment = Readonly<Record<string, string | undefined>>
export type Print = (line: string) => void

/** The exit code when damage was found: the same as that of `flux-resourceset-cli verify`. */
export const NOT_WHOLE = 4

export const HELP = `flux-resourceset: the desired state of a fleet of Kubernetes clusters, polled by their Flux Operators

Usage:
  flux-resourceset                                 start the service
  flux-resourceset verify [-o json]                check that the history is whole and the documents are what it says
  flux-resourceset prune-history --before <time> [--dry-run] [-o json]
                                                   give up revisions from before a time; the rest stays verifiable
  flux-resourceset migrate [-o json]               bring the schema of the store up to date; a crud service does so too
  flux-resourceset backup --to <file> [-o json]    write all there is into a file, while the service runs; packed when
                                                   it is called .gz, to the standard output when it is called -
  flux-resourceset restore --from <file> [-o json] fill an empty store from a backup; run it again when it was stopped
  flux-resourceset copy --from <url> --to <url> [-o json]
                                                   bring a store up to another one, such as sqlite:// to postgres://
  flux-resourceset bundle keygen --to <prefix>     make a pair of keys: <prefix>.pem signs, <prefix>.pub.pem checks
  flux-resourceset bundle export --to <file> --key <private.pem> [--since <revision>] [--selector <selector>] [-o json]
                                                   write what came after a revision, signed, for a store that has it
  flux-resourceset bundle import --from <file> --key <public.pem> [--key <another.pem>] [-o json]
                                                   check a bundle, and bring it into the store
  flux-resourceset token create <name> --role <role> [--cluster <id>] [--selector <selector>] [--types <a,b>]
                                       [--expires <time>] [-o json]
                                                   make a token directly in the store: the first admin, or a way back in
  flux-resourceset token list [-o json]            the tokens there are, never with their secrets
  flux-resourceset token revoke <name>             take a token out of use
  flux-resourceset scaffold-template <type>        print a ResourceSet template of a type to start from
  flux-resourceset --help | --version

Settings come from the environment; the commands on the store need only DATABASE_URL, and RESOURCES_DIR where types
of your own are used. They may run beside the service.

Exit codes: 0 done, 1 something failed, 2 bad use, bad settings or a file that does not fit, 4 the history is not whole
(verify, prune-history), or what was read is not what it was (restore, copy, bundle import).

Examples:
  DATABASE_URL=sqlite:///var/lib/flux-resourceset/fleet.db flux-resourceset verify
  flux-resourceset prune-history --before 2026-01-01 --dry-run
  flux-resourceset backup --to fleet-backup.gz
  flux-resourceset copy --from sqlite://data/fleet.db --to postgres://fleet@db.example.com/fleet
  flux-resourceset bundle export --to site-a.bundle --key bundles.pem --since 120 --selector region=site-a
  DATABASE_URL=sqlite:///var/lib/flux-resourceset/fleet.db flux-resourceset token create ops --role admin
  RESOURCES_DIR=types flux-resourceset scaffold-template network_policies > templates/network-policies.yaml
`

/** Runs a command and returns its exit code; undefined when there is no such command. */
export async function runStoreCommand(
  name: string,
  args: readonly string[],
  env: Environment,
  print: Print,
): Promise<number | undefined> {
  if (name === 'verify') return verify(args, env, print)
  if (name === 'prune-history') return pruneHistory(args, env, print)
  if (name === 'migrate') return migrate(args, env, print)
  return undefined
}

async function verify(args: readonly string[], env: Environment, print: Print): Promise<number> {
  const { output } = parse(args, { output: OUTPUT })
  const verification = await withStore(env, { write: false }, verifyLog)
  printVerification(verification, isJson(output), print)
  return verification.verified ? 0 : NOT_WHOLE
}

async function migrate(args: readonly string[], env: Environment, print: Print): Promise<number> {
  const { output } = parse(args, { output: OUTPUT })
  const json = isJson(output)
  const location = locate(env)
  if (location.backend === 'sqlite' && location.mode === 'ro')
    throw new UsageProblem('DATABASE_URL says mode=ro: this needs to write')
  const { from, to } = await migrateStore(location)
  if (json) print(JSON.stringify({ from, to }))
  else if (from === to) print(`the schema is at version ${to} already`)
  else print(`the schema is at version ${to} now: it was at ${from || 'none'}`)
  return 0
}

async function pruneHistory(args: readonly string[], env: Environment, print: Print): Promise<number> {
  const values = parse(args, {
    output: OUTPUT,
    before: { type: 'string' },
    'dry-run': { type: 'boolean' },
  })
  const before = parseBefore(values.before)
  const json = isJson(values.output)
  const dryRun = values['dry-run'] === true
  const result = await withStore(env, { write: !dryRun }, (store) => pruneLog(store, before, dryRun))
  if (!result.ok) {
    if (!json) print('nothing was pruned: the history is not whole, and pruning would hide that')
    printVerification(result.verification, json, print)
    return NOT_WHOLE
  }
  const { revisions, anchor } = result.pruned
  if (json) {
    print(JSON.stringify({ dry_run: dryRun, revisions, anchor: anchor ?? null }))
  } else if (revisions === 0) {
    print(`no revision is from before ${before}: nothing to prune`)
  } else {
    const done = dryRun ? 'would prune' : 'pruned'
    print(`${done} ${revisions} revisions, up to revision ${anchor?.revision} of ${anchor?.time}`)
    print(`the history is verifiable from there on: anchor ${anchor?.hash}`)
  }
  return 0
}

function printVerification(verification: Verification, json: boolean, print: Print): void {
  const { verified, from, to, revisions, documents, hash, problems } = verification
  if (json) {
    print(JSON.stringify(verification))
  } else if (verified) {
    const range = revisions > 0 ? `${revisions} revisions (${from} to ${to})` : `no revisions after ${to}`
    print(`verified: ${range} and ${documents} documents`)
    print(`hash of revision ${to}: ${hash || 'none'}`)
  } else {
    print('not verified:')
    for (const problem of problems) print(`  ${problem}`)
  }
}

export const OUTPUT = { type: 'string', short: 'o' } as const

/** Returns the flags of a command, and its positional arguments where it takes any. */
export function parse<T extends NonNullable<Parameters<typeof parseArgs>[0]>['options']>(
  args: readonly string[],
  options: T,
  allowPositionals = false,
): Record<string, string | boolean | undefined> & { readonly names: readonly string[] } {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: options ?? {},
      strict: true,
      allowPositionals,
    })
    return { ...(values as Record<string, string | boolean | undefined>), names: positionals } as never
  } catch (error) {
    throw new UsageProblem((error as Error).message)
  }
}

export function isJson(output: string | boolean | undefined): boolean {
  if (output === undefined || output === 'json') return output === 'json'
  throw new UsageProblem(`-o must be json, not "${output}"`)
}

/** A date without a time means its first moment, in UTC. */
function parseBefore(text: string | boolean | undefined): string {
  const given = String(text ?? '')
  const time = parseTime(/^\d{4}-\d\d-\d\d$/.test(given) ? `${given}T00:00:00Z` : given)
  if (time !== undefined) return time
  throw new UsageProblem(
    given === ''
      ? '--before is required: revisions from before that time go'
      : `--before must be a date or an RFC 3339 time such as 2026-01-31T12:00:00Z, not "${given}"`,
  )
}

export async function withStore<T>(
  env: Environment,
  options: { write: boolean; create?: boolean },
  use: (store: Store) => Promise<T>,
): Promise<T> {
  const store = openStore(env, options)
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

/** Opens the store that the environment names. A SQLite file must exist already unless `create` is set. */
export function openStore(
  env: Environment,
  { write, create = false }: { write: boolean; create?: boolean },
): Store {
  const location = locate(env)
  if (location.backend === 'postgres') return openAt(location, { write })
  if (write && location.mode === 'ro') {
    throw new UsageProblem('DATABASE_URL says mode=ro: this needs to write')
  }
  const mode = create ? location.mode : 'rw'
  return openAt({ ...location, mode: write ? mode : 'ro' }, { write })
}

function locate(env: Environment) {
  const config = parseStoreConfig(env)
  if (!config.ok) throw new UsageProblem(...config.problems)
  if (config.store.backend === 'memory') {
    throw new UsageProblem('a store in memory lasts as long as its process: there is nothing to work on')
  }
  return config.store
}
