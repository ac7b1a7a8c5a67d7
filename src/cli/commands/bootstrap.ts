// `bootstrap`: what clusters apply once to phone home, on stdout or as files.

import { join } from 'node:path'
import type { Command } from 'commander'
import type { IssuedToken } from '../../api/wire-types.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { POLL_BASE } from '../../base/urls.ts'
import { describeGrant } from '../../domain/access/grant.ts'
import { DEFAULT_GRACE } from '../../domain/access/token.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { checkFolder, replaceFile } from '../config/replace-file.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import { count } from '../output/count.ts'
import { harmless } from '../output/print.ts'
import { startProgress } from '../output/progress.ts'
import { Refusal } from '../server/api-client.ts'
import { checkGrace, createToken, rotateToken } from '../server/mint-token.ts'
import { clusterNoun, type Noun } from '../server/nouns.ts'
import { listAll, pathOf, TOKENS } from '../server/read-documents.ts'
import { warningsIn } from '../server/send-change.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly flavor?: string
  readonly interval?: string
  readonly externalUrl?: string
  readonly tokenSecret?: string
  readonly withToken?: boolean
  readonly tokenGrace?: string
  readonly certSecret?: string
  readonly fluxInstance?: boolean
  readonly outputDir?: string
}

/** Bundles to ask for at once. */
const AT_ONCE = 8
const SEPARATOR = /(?<=\n)---\n/
/** The URL of a provider that polls without TLS. */
const PLAIN_POLL = new RegExp(`(?<=\\n) {2}url: http:[^\\n]*${POLL_BASE}/`)
/** The Secret that a bundle leaves empty, and its last line. */
const TOKEN_SECRET = 'internal-api-token'
const EMPTY_SECRET = /(?<=\n)type: Opaque\n/
/** Comments before a manifest: those of the Secret ask for the token. */
const COMMENTS = /^(?:#.*\n|\n)*/

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
    .option('--cert-secret <name>', 'a Secret with a client certificate, or with the authority of the server')
    .option('--no-flux-instance', 'leave Flux itself out: it is installed already')
    .addHelpText(
      'after',
      `
Apply the bundle once, when the Flux Operator is there; the cluster polls from then on. Applied again it changes
nothing. The Secret ${TOKEN_SECRET} is empty unless --with-token fills it: with the token cluster-ID, which polls
for this cluster and no other. One that is there already is rotated.

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
  const read: Read = async (id, { flavor = flags.flavor, secret = tokenSecret } = {}) => {
    const query = {
      flavor,
      interval: flags.interval,
      api_url: flags.externalUrl,
      token_secret: secret,
      cert_secret: flags.certSecret,
      flux_instance: flags.fluxInstance === false ? false : undefined,
    }
    const answer = await session.api.get(pathOf(noun, id, 'bootstrap'), { query })
    // The same for every cluster.
    for (const warning of warningsIn(answer).filter((each) => !warned.has(each))) {
      warned.add(warning)
      session.warn(warning)
    }
    return String(answer.body)
  }
  if (outputDir === undefined) {
    const bundle = await read(cluster as string)
    return print(session, withToken ? await fillIn(session, cluster as string, bundle, tokenGrace) : bundle)
  }
  const ids = cluster === undefined ? await idsOf(session, noun, selector) : [cluster]
  await writeFiles(session, ids, { ...flags, outputDir }, read)
}

/** The bundle of a cluster, as the API has it. */
type Read = (
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

/** Makes a token last of all: whatever else is wrong is known by then. */
async function fillIn(
  session: Session,
  id: string,
  bundle: string,
  grace: string | undefined,
): Promise<string> {
  const { secret } = await clusterToken(session, id, grace)
  const data = `data:\n  token: ${Buffer.from(secret).toString('base64')}\n`
  const manifests = bundle.split(SEPARATOR)
  const first = manifests.findIndex((manifest) => EMPTY_SECRET.test(manifest))
  const filled = (empty: string): string =>
    empty.replace(COMMENTS, '').replace(EMPTY_SECRET, (line) => `${line}${data}`)
  return manifests.map((manifest, i) => (i === first ? filled(manifest) : manifest)).join('---\n')
}

/** The token of a cluster: made, or given a new secret, with the old one valid until the cluster has the new bundle. */
async function clusterToken(session: Session, id: string, grace = DEFAULT_GRACE): Promise<IssuedToken> {
  const name = `cluster-${id}`
  const message = `for the bootstrap of cluster ${id}`
  try {
    return await createToken(session, { name, role: 'cluster', cluster: id }, message)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.status === 403) throw needsAdmin(error, id)
    if (error.status !== 409) throw error
  }
  const { body: known } = await session.api.getAsWriter(pathOf(TOKENS, name))
  // Or the cluster would be given what somebody else may do.
  if (known.role !== 'cluster' || known.cluster !== id)
    throw new Failure(
      EXIT.refused,
      `there is a token "${name}" already, and it is not for polls of this cluster: it has the ${describeGrant(known)}`,
      { hint: `${PROGRAM} token revoke ${name}, if nobody needs it` },
    )
  return rotateToken(session, name, grace, message)
}

function needsAdmin({ message, details }: Refusal, id: string): Failure {
  return new Failure(
    EXIT.refused,
    '--with-token makes a token for the cluster, which only the role admin may',
    {
      details: [message, ...details],
      hint: `give the token of an admin by FLUX_API_WRITE_TOKEN or --write-token, or leave --with-token out and ask one for: ${PROGRAM} token create cluster-${id} --role cluster --cluster ${id}`,
    },
  )
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

/** As Kubernetes reads them: YAML 1.1, with times as texts. */
async function parseManifests(bundle: string): Promise<JsonObject[]> {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(bundle, {
    version: '1.1',
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:timestamp'),
  })
  return documents.map((document) => document.toJS() as Json).filter(isObject)
}

/**
 * Of the identity flavor there is one bundle for all, and a file for each cluster that says who it is. Tokens are the
 * clusters' own, so they are never in what all of them share.
 */
async function writeFiles(
  session: Session,
  ids: readonly string[],
  { outputDir, flavor, withToken = false, tokenGrace }: Flags & { readonly outputDir: string },
  read: Read,
): Promise<void> {
  const written: string[] = []
  const write = (path: string, text: string): void => {
    replaceFile(path, text)
    written.push(path)
  }
  const isShared = flavor === 'identity'
  const folder = isShared ? join(outputDir, 'clusters') : outputDir
  const shared = isShared && (await read(ids[0] as string, withToken ? { secret: TOKEN_SECRET } : {}))
  if (shared) write(join(outputDir, 'bootstrap.yaml'), shared)
  let isPlain = false
  const bundleOf = async (id: string): Promise<string> => {
    const bundle = await read(id, isShared ? { flavor: 'concrete' } : {})
    isPlain ||= pollsInPlain(bundle)
    const own = shared ? identityIn(bundle, { shared, withSecret: withToken }) : bundle
    if (!withToken) return own
    checkFolder(folder)
    return fillIn(session, id, own, tokenGrace)
  }
  const progress = startProgress(session, 'Writing')
  try {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE)
      const texts = await Promise.allSettled(some.map(bundleOf))
      // What one of them was given must not get lost because another was not.
      for (const [i, text] of texts.entries())
        if (text.status === 'fulfilled') write(join(folder, `${some[i]}.yaml`), text.value)
      const failed = texts.find((text) => text.status === 'rejected')
      if (failed) throw failed.reason
      progress.show(at + some.length, ids.length)
    }
  } catch (error) {
    if (withToken && written.length > 0)
      session.note(`${count(written.length, 'file')} written to ${outputDir} before this:`)
    throw error
  } finally {
    progress.end()
  }
  if (isPlain) warnOfPlainHttp(session)
  await session.print({
    value: { files: written },
    names: written,
    human: () => `wrote ${written.length === 1 ? written[0] : `${written.length} files to ${outputDir}`}\n`,
  })
}

/**
 * The part of a bundle that is the cluster's own: the identity and a Secret, which follow the namespace. The namespace is
 * that of the shared bundle, so that applying one file takes nothing away that the other has set.
 */
function identityIn(bundle: string, of: { readonly shared: string; readonly withSecret: boolean }): string {
  const [, namespace = ''] = of.shared.split(SEPARATOR)
  const own = bundle.split(SEPARATOR).slice(2, of.withSecret ? 4 : 3)
  return [namespace, ...own].join('---\n')
}

function pollsInPlain(bundle: string): boolean {
  return PLAIN_POLL.test(bundle)
}

function warnOfPlainHttp({ warn }: Session): void {
  warn('clusters would poll over plain http, token and all: give --external-url https://… for real ones')
}
