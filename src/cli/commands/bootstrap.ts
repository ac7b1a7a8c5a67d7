// `bootstrap`: what clusters apply once to phone home, on stdout or as files.

import { join } from 'node:path'
import type { Command } from 'commander'
import { isObject } from '../../base/json.ts'
import { count } from '../../base/sentences.ts'
import { DEFAULT_GRACE } from '../../domain/access/token.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { fillSecret, identityIn, parseManifests, pollsInPlain } from '../output/bundle-manifests.ts'
import { harmless } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { checkFolder, writeOwnFile } from '../output/write-files.ts'
import { issueClusterTokens, tokensThere } from '../server/bootstrap-token.ts'
import { checkGrace } from '../server/mint-token.ts'
import { clusterNoun, type Noun } from '../server/nouns.ts'
import { listAll, pathOf } from '../server/read-documents.ts'
import { warningsIn } from '../server/response-warnings.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly flavor?: string
  readonly interval?: string
  readonly externalUrl?: string
  readonly tokenSecret?: string
  readonly withToken?: boolean
  readonly tokenGrace?: string
  readonly yes?: boolean
  readonly certSecret?: string
  readonly fluxInstance?: boolean
  readonly ack?: string
  readonly events?: string
  readonly outputDir?: string
}

/** Bundles to request at once. */
const CONCURRENCY = 8
/** The Secret that a bundle leaves empty. */
const TOKEN_SECRET = 'internal-api-token'

export function defineBootstrap(command: Command, { run, program }: Tools): void {
  command
    .argument('[cluster]', 'id of the cluster')
    .option('-l, --selector <selector>', 'all clusters that match, one file each; needs --output-dir')
    .option(
      '--output-dir <folder>',
      'write <cluster>.yaml there; of the identity flavor bootstrap.yaml, and clusters/<cluster>.yaml',
    )
    .option(
      '--flavor <flavor>',
      'concrete: with the URLs of the cluster; identity: the same for every cluster',
    )
    .option('--interval <duration>', 'how often the cluster polls (default 5m)')
    .option(
      '--external-url <url>',
      'where clusters reach the API (default --api-url when it is given, or what the server knows of itself)',
    )
    .option(
      '--token-secret <name>',
      'a Secret that is there already and holds the token; the bundle has none then',
    )
    .option(
      '--with-token',
      "make the cluster's own token and put it into the bundle, which is a secret then; for admins",
    )
    .option(
      '--token-grace <duration>',
      `how long the token stays valid that the cluster has already (default ${DEFAULT_GRACE})`,
    )
    .option('-y, --yes', 'do not ask before tokens are rotated')
    .option('--cert-secret <name>', 'a Secret with a client certificate, or with the authority of the server')
    .option('--no-flux-instance', 'leave Flux itself out: it is installed already')
    .option(
      '--ack <what>',
      'what the cluster reports back: components that are ready and answers that are applied (components, the default), answers alone (types), or nothing (off)',
    )
    .option('--events <on|off>', "whether Flux's events are sent to the API (default on)")
    .addHelpText(
      'after',
      `
Apply the bundle once, when the Flux Operator is there; the cluster polls from then on. Applied again it changes
nothing. The Secret ${TOKEN_SECRET} is empty unless --with-token fills it: with the token cluster-ID, which polls
for this cluster and no other. One that is there already is rotated, which is asked about on a terminal.

Examples:
  ${PROGRAM} bootstrap demo-cluster-01 --external-url https://fleet.example.com --with-token | kubectl apply -f -
  ${PROGRAM} bootstrap --selector environment=prod --output-dir clusters/
  ${PROGRAM} bootstrap --flavor identity --selector id --output-dir image/`,
    )
    .action(
      run((session, cluster: string | undefined, flags: Flags) => {
        const url = flags.externalUrl ?? program.opts<{ apiUrl?: string }>().apiUrl
        return bootstrap(session, cluster, { ...flags, ...(url !== undefined && { externalUrl: url }) })
      }),
    )
}

async function bootstrap(session: Session, cluster: string | undefined, flags: Flags): Promise<void> {
  const { selector, outputDir, withToken, tokenSecret, tokenGrace } = flags
  if ((cluster === undefined) === (selector === undefined))
    throw usage('which cluster? Give its id, or --selector SELECTOR with --output-dir FOLDER')
  if (selector !== undefined && outputDir === undefined)
    throw usage('--selector needs --output-dir FOLDER: one file is written for each cluster')
  if (outputDir === '') throw usage('--output-dir must name a folder')
  if (withToken && tokenSecret !== undefined)
    throw usage('--token-secret names a Secret that is there already: there is none to put the token into')
  if (withToken && outputDir === undefined && session.format.kind === 'name')
    throw usage('the token would be lost: use another --output')
  if (tokenGrace !== undefined && !withToken) throw usage('--token-grace goes with --with-token')
  checkGrace(tokenGrace, '--token-grace')
  const noun = clusterNoun(session.nouns)
  const warned = new Set<string>()
  const read: ReadBundle = async (id, { flavor = flags.flavor, secret = tokenSecret } = {}) => {
    const query = {
      flavor,
      interval: flags.interval,
      api_url: flags.externalUrl,
      token_secret: secret,
      cert_secret: flags.certSecret,
      flux_instance: flags.fluxInstance === false ? false : undefined,
      ack: flags.ack,
      events: flags.events,
    }
    const response = await session.api.get(pathOf(noun, id, 'bootstrap'), { query })
    // Most warnings are the same for every cluster.
    for (const warning of warningsIn(response).filter((each) => !warned.has(each))) {
      warned.add(warning)
      session.warn(warning)
    }
    return String(response.body)
  }
  const ids = cluster === undefined ? await idsOf(session, noun, selector) : [cluster]
  if (withToken) await agreeToRotate(session, flags, await tokensThere(session, ids))
  if (outputDir === undefined) {
    const bundle = await read(cluster as string)
    if (!withToken) return print(session, bundle)
    const [secret] = await issueClusterTokens(session, ids, tokenGrace)
    return print(session, fillSecret(bundle, secret as string))
  }
  await writeFiles(session, ids, { ...flags, outputDir }, read)
}

/** Tokens that clusters have already get another secret: asked on a terminal, noted where there is none. */
async function agreeToRotate(session: Session, flags: Flags, names: readonly string[]): Promise<void> {
  if (names.length === 0) return
  const what = names.length === 1 ? `token ${names[0]}` : `the tokens of ${count(names.length, 'cluster')}`
  const ends = `earlier secrets are valid for ${flags.tokenGrace ?? DEFAULT_GRACE}: apply the bundle by then`
  const question = { does: `rotate ${what}`, word: 'yes', notes: [ends], isOptional: true }
  if (!isAsked(session, flags) || !(await agree(session, question, 'add --yes')))
    session.note(`rotating ${what}: ${ends}`)
}

/** Reads the bundle of a cluster from the API. */
type ReadBundle = (
  id: string,
  instead?: { readonly flavor?: string | undefined; readonly secret?: string | undefined },
) => Promise<string>

async function idsOf(session: Session, noun: Noun, selector: string | undefined): Promise<string[]> {
  const { documents } = await listAll(session, noun, { query: { selector } })
  if (documents.length === 0) throw usage(`no cluster matches "${selector}"`)
  const ids = documents.map(({ id }) => id)
  const odd = ids.find((id) => !/^[a-z0-9][a-z0-9.-]*$/.test(id))
  if (odd !== undefined) throw usage(`"${odd}" is no id that a file can be named after`)
  return ids
}

async function print(session: Session, bundle: string): Promise<void> {
  const { format, terminal } = session
  if (pollsInPlain(bundle)) warnOfPlainHttp(session)
  if (format.kind === 'human' || format.kind === 'yaml') {
    terminal.stdout.write(harmless(terminal, bundle))
    return
  }
  const items = await parseManifests(bundle)
  await session.print({
    value: { apiVersion: 'v1', kind: 'List', items },
    names: items.map(({ kind, metadata }) => `${kind}/${isObject(metadata) ? metadata.name : ''}`),
    human: () => bundle,
  })
}

/**
 * Writes a bundle for each cluster; of the identity flavor one bundle for all, and a file for each cluster with its
 * identity. Tokens are the clusters' own, so they are never in the shared bundle.
 */
async function writeFiles(
  session: Session,
  ids: readonly string[],
  { outputDir, flavor, withToken = false, tokenGrace }: Flags & { readonly outputDir: string },
  read: ReadBundle,
): Promise<void> {
  const written: string[] = []
  const write = async (path: string, text: string): Promise<void> => {
    await writeOwnFile(path, text)
    written.push(path)
  }
  const isShared = flavor === 'identity'
  const folder = isShared ? join(outputDir, 'clusters') : outputDir
  const writeBundle = (id: string, text: string): Promise<void> => write(join(folder, `${id}.yaml`), text)
  const shared = isShared && (await read(ids[0] as string, withToken ? { secret: TOKEN_SECRET } : {}))
  if (shared) await write(join(outputDir, 'bootstrap.yaml'), shared)
  if (withToken) checkFolder(folder)
  let isPlain = false
  const bundleOf = async (id: string): Promise<string> => {
    const bundle = await read(id, isShared ? { flavor: 'concrete' } : {})
    isPlain ||= pollsInPlain(bundle)
    return shared ? identityIn(bundle, { shared, withSecret: withToken }) : bundle
  }
  const progress = startProgress(session, withToken ? 'Reading' : 'Writing')
  const unfilled: string[] = []
  try {
    for (let at = 0; at < ids.length; at += CONCURRENCY) {
      const some = ids.slice(at, at + CONCURRENCY)
      const texts = await Promise.all(some.map(bundleOf))
      if (withToken) unfilled.push(...texts)
      else for (const [i, text] of texts.entries()) await writeBundle(some[i] as string, text)
      progress.show(at + some.length, ids.length)
    }
  } finally {
    progress.end()
  }
  if (withToken) {
    // Last of all, when only the files themselves can fail: a secret is shown once.
    const secrets = await issueClusterTokens(session, ids, tokenGrace)
    for (const [i, secret] of secrets.entries())
      await writeBundle(ids[i] as string, fillSecret(unfilled[i] as string, secret))
  }
  if (isPlain) warnOfPlainHttp(session)
  await session.print({
    value: { files: written },
    names: written,
    human: () =>
      `wrote ${written.length === 1 ? written[0] : `${count(written.length, 'file')} to ${outputDir}`}\n`,
  })
}

function warnOfPlainHttp({ warn }: Session): void {
  warn('clusters would poll over plain http, token and all: give --external-url https://… for real ones')
}
