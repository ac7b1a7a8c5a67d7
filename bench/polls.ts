// `npm run bench`: what a poll costs the server, by fleet size, beside nginx and a bare node:http server in the same run.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '../test/certificates.ts'
import { findPort } from '../test/find-port.ts'
import { type Case, isPeer, type Server, type Style } from './polls/cases.ts'
import {
  cacheMegabytes,
  fitsCache,
  MOST_CLUSTERS,
  pollLines,
  pollsOf,
  startOurs,
  writeDatabase,
} from './polls/fleets.ts'
import { addToSamples } from './polls/kept-samples.ts'
import { buildClient, measure, pinServer } from './polls/measure.ts'
import { report } from './polls/page.ts'
import { fetchAnswers, findNginx, startBare, startNginx, startProxy, type TlsFiles } from './polls/peers.ts'
import { progress } from './print.ts'
import type { Target } from './server-process.ts'

const SIZES = (process.env.BENCH_SIZES ?? '10,1000,10000,100000').split(',').map(Number)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 40_000)
/**
 * An answer is cached when its cluster has polled twice and there was time to compress it. Under full load there is time for
 * a part of them: so many polls of each cluster fill the cache, and more if there is room for all answers.
 */
const POLLS_TO_CACHE = 12
const POLLS_TO_CACHE_ALL = 30
/**
 * A handshake costs several polls, and a poll on a kept connection a part of one: rounds take about as long for all. They
 * take seconds, so that garbage collections and notes that are written fall into each of them.
 */
const SHARES: Readonly<Record<Style, number>> = { new: 1, kept: 4, tls: 0.25, 'tls-x25519': 0.25 }
/** The size of the fleet that peers serve too. */
const PEER_SIZE = SIZES.includes(10_000) ? 10_000 : (SIZES[0] ?? 10)
/** Keeps samples from run to run, which may then be short: what is told is the medians of all. */
const SAMPLES = process.env.BENCH_SAMPLES

// Each server is killed with this process.
process.setMaxListeners(0)
const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
const targets: Target[] = []
const cases: Case[] = []
try {
  await main()
} finally {
  for (const { child } of targets) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const client = buildClient(folder)
  const tls = await writeCertificate()
  for (const size of SIZES) {
    const own = writePolls(size, 'own', false)
    await addUniform(size, writePolls(size, 'shared', true))
    await addLivedIn(size, own, writePolls(size, 'shared', true), tls)
    if (size === PEER_SIZE) await addPeers(own, tls)
  }
  for (const target of targets) pinServer(target)
  for (const each of cases) {
    const isQuickest = cases.findLast(({ target }) => target === each.target) === each
    if (isPeer(each) || each.upstream || !isQuickest) continue
    progress(`filling the cache: ${each.server}, ${each.size}`)
    const isRoomy = each.server === 'lived-in, room for all answers'
    const polls = isRoomy ? POLLS_TO_CACHE_ALL : POLLS_TO_CACHE
    await measure(client, each, tls.ca, polls * Math.min(each.size, MOST_CLUSTERS))
  }
  // The first round warms all up, and does not count.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const each of cases) {
      progress(`round ${round} of ${ROUNDS}: ${each.server}, ${each.size}, ${each.style}`)
      const requests = Math.ceil(REQUESTS * SHARES[each.style])
      const sample = await measure(client, each, tls.ca, requests, round * requests)
      if (round > 0) each.samples.push(sample)
    }
  }
  progress('')
  const measured = SAMPLES === undefined ? cases : addToSamples(SAMPLES, cases)
  report(measured, PEER_SIZE)
}

function add(
  server: Server,
  size: number,
  target: Target,
  polls: string,
  ports: Partial<Record<Style, number>>,
  upstream?: Target,
) {
  for (const [style, port] of Object.entries(ports) as [Style, number][])
    cases.push({ server, size, style, target, upstream, port, polls, samples: [] })
}

async function addUniform(size: number, shared: string): Promise<void> {
  progress(`writing a uniform fleet of ${size} clusters`)
  const database = await writeDatabase(folder, size, 'uniform')
  const target = started(await startOurs(`uniform ${size}`, database, await findPort(), cacheMegabytes(size)))
  add('uniform', size, target, shared, { new: target.port, kept: target.port })
}

async function addLivedIn(size: number, own: string, shared: string, tls: TlsFiles): Promise<void> {
  progress(`writing a lived-in fleet of ${size} clusters`)
  const database = await writeDatabase(folder, size, 'lived-in')
  const target = started(
    await startOurs(`lived-in ${size}`, database, await findPort(), cacheMegabytes(size)),
  )
  const { port } = target
  add('lived-in', size, target, own, { new: port, kept: port })
  add('lived-in, shared token', size, target, shared, { new: port, kept: port })
  if (!fitsCache(size)) {
    const roomy = cacheMegabytes(size, true)
    const other = started(await startOurs(`room for all ${size}`, database, await findPort(), roomy))
    add('lived-in, room for all answers', size, other, own, { new: other.port, kept: other.port })
  }
  if (size !== PEER_SIZE) return
  const secure = started(
    await startOurs('with TLS', database, await findPort(), cacheMegabytes(size), tls, await findPort()),
  )
  add('lived-in', size, secure, own, { tls: secure.port, 'tls-x25519': secure.port })
}

async function addPeers(own: string, tls: TlsFiles): Promise<void> {
  progress('starting nginx and node:http')
  const polls = pollsOf(PEER_SIZE)
  const ours = cases.find(({ server, size }) => server === 'lived-in' && size === PEER_SIZE) as Case
  const answers = await fetchAnswers(ours.port, polls)
  const [plain, secure] = [await findPort(), await findPort()]
  const bare = started(await startBare(folder, answers[0] as Buffer, plain, secure, tls))
  add('node:http', PEER_SIZE, bare, own, { new: plain, kept: plain, tls: secure, 'tls-x25519': secure })
  const missing = findNginx()
  if (missing) {
    console.error(`${missing}: there is nothing beside but node:http`)
    return
  }
  const front = await findPort()
  const proxy = started(await startProxy(folder, ours.port, front, tls))
  add('lived-in, behind nginx', PEER_SIZE, proxy, own, { tls: front, 'tls-x25519': front }, ours.target)
  const ports = { fresh: await findPort(), kept: await findPort(), tls: await findPort() }
  const nginx = started(await startNginx(folder, polls, answers, ports, tls))
  add('nginx', PEER_SIZE, nginx, own, {
    new: ports.fresh,
    kept: ports.kept,
    tls: ports.tls,
    'tls-x25519': ports.tls,
  })
}

function started(target: Target): Target {
  targets.push(target)
  return target
}

function writePolls(size: number, name: string, isShared: boolean): string {
  return writeIn(`polls-${size}-${name}`, pollLines(pollsOf(size), isShared))
}

function writeIn(name: string, text: string): string {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

async function writeCertificate(): Promise<TlsFiles & { readonly ca: string }> {
  const authority = await createAuthority('bench')
  const pair = await authority.issue({ dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] })
  return {
    ca: writeIn('ca.pem', authority.pem),
    cert: writeIn('cert.pem', pair.cert),
    key: writeIn('key.pem', pair.key),
  }
}
