// `bootstrap`: what clusters apply once to phone home, on stdout or as files.
import { join } from 'node:path'
import type { Command } from 'commander'
import { POLL_BASE } from '../../domain/base-url.ts'
import { isObject, type Json, type JsonObject } from '../../domain/json.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { usage } from '../failure.ts'
import { clusterNoun, type Noun } from '../nouns.ts'
import { harmless } from '../print.ts'
import { startProgress } from '../progress.ts'
import { listAll, pathOf } from '../read-documents.ts'
import { replaceFile } from '../replace-file.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly selector?: string
  readonly flavor?: string
  readonly interval?: string
  readonly externalUrl?: string
  readonly tokenSecret?: string
  readonly withToken?: boolean
  readonly certSecret?: string
  readonly fluxInstance?: boolean
  readonly outputDir?: string
}

/** Bundles to ask for at once. */
const AT_ONCE = 8
const SEPARATOR = /(?<=\n)---\n/
/** The URL of a provider that polls without TLS. */
const PLAIN_POLL = new RegExp(`(?<=\\n) {2}url: http:[^\\n]*${POLL_BASE}/`)
/** The last line of the Secret that a bundle leaves empty. */
const EMPTY_SECRET = /(?<=\n)type: Opaque\n/

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
    .option('--with-token', 'put your token for reading into the bundle, which is a secret then')
    .option('--cert-secret <name>', 'a Secret with a client certificate, or with the authority of the server')
    .option('--no-flux-instance', 'leave Flux itself out: it is installed already')
    .addHelpText(
      'after',
      `
Apply the bundle once, when the Flux Operator is there; the cluster polls from then on. Applied again it changes
nothing. The Secret internal-api-token is empty unless --with-token fills it.

Examples:
  ${PROGRAM} bootstrap demo-cluster-01 --external-url https://fleet.example.com | kubectl apply -f -
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
  const { selector, outputDir, withToken, tokenSecret } = flags
  if ((cluster === undefined) === (selector === undefined))
    throw usage('which cluster? Give its id, or --selector SELECTOR with --output-dir FOLDER')
  if (selector !== undefined && outputDir === undefined)
    throw usage('--selector needs --output-dir FOLDER: one file is written for each cluster')
  if (outputDir === '') throw usage('--output-dir must name a folder')
  if (withToken && tokenSecret !== undefined)
    throw usage('--token-secret names a Secret that is there already: there is none to put the token into')
  if (withToken && session.settings.pollToken === undefined)
    throw usage('--with-token needs a token for reading: give FLUX_API_TOKEN or --api-token')
  const noun = clusterNoun(session.nouns)
  const read = async (id: string, flavor = flags.flavor): Promise<string> => {
    const query = {
      flavor,
      interval: flags.interval,
      api_url: flags.externalUrl,
      token_secret: tokenSecret,
      cert_secret: flags.certSecret,
      flux_instance: flags.fluxInstance === false ? false : undefined,
    }
    const { body } = await session.api.get(pathOf(noun, id, 'bootstrap'), { query })
    return fillIn(String(body), withToken ? session.settings.pollToken : undefined)
  }
  if (outputDir === undefined) return print(session, await read(cluster as string))
  const ids = cluster === undefined ? await idsOf(session, noun, selector) : [cluster]
  await writeFiles(session, ids, { ...flags, outputDir }, read)
}

async function idsOf(session: Session, noun: Noun, selector: string | undefined): Promise<string[]> {
  const { documents } = await listAll(session, noun, { query: { selector } })
  if (documents.length === 0) throw usage(`no cluster matches "${selector}"`)
  const ids = documents.map(({ id }) => id)
  const odd = ids.find((id) => !/^[a-z0-9][a-z0-9.-]*$/.test(id))
  if (odd !== undefined) throw usage(`"${odd}" is no id that a file can be named after`)
  return ids
}

function fillIn(bundle: string, token: string | undefined): string {
  if (token === undefined) return bundle
  const data = `data:\n  token: ${Buffer.from(token).toString('base64')}\n`
  return bundle.replace(EMPTY_SECRET, (line) => `${line}${data}`)
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

/** Of the identity flavor there is one bundle for all, and a file for each cluster that says who it is. */
async function writeFiles(
  session: Session,
  ids: readonly string[],
  { outputDir, flavor }: Flags & { readonly outputDir: string },
  read: (id: string, flavor?: string) => Promise<string>,
): Promise<void> {
  const written: string[] = []
  const write = (path: string, text: string): void => {
    replaceFile(path, text)
    written.push(path)
  }
  const isShared = flavor === 'identity'
  const folder = isShared ? join(outputDir, 'clusters') : outputDir
  if (isShared) write(join(outputDir, 'bootstrap.yaml'), await read(ids[0] as string))
  let isPlain = false
  const progress = startProgress(session, 'Writing')
  try {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE)
      const bundles = await Promise.all(some.map((id) => read(id, isShared ? 'concrete' : flavor)))
      for (const [i, bundle] of bundles.entries()) {
        isPlain ||= pollsInPlain(bundle)
        write(join(folder, `${some[i]}.yaml`), isShared ? identityIn(bundle) : bundle)
      }
      progress.show(at + some.length, ids.length)
    }
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

/** The part of a bundle that is the cluster's own: its first two manifests, the namespace and the identity. */
function identityIn(bundle: string): string {
  return bundle.split(SEPARATOR).slice(1, 3).join('---\n')
}

function pollsInPlain(bundle: string): boolean {
  return PLAIN_POLL.test(bundle)
}

function warnOfPlainHttp({ warn }: Session): void {
  warn('clusters would poll over plain http, token and all: give --external-url https://… for real ones')
}
