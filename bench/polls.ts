// `npm run bench`: what a poll costs the server, by fleet size, beside nginx and a bare node:http server in the same run.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAuthority } from '../test/certificates.ts'
import { findPort } from '../test/find-port.ts'
import type { FleetKind } from './fleet.ts'
import { type Poll, pollLines, pollsOf, startOurs, writeDatabase } from './polls/fleets.ts'
import { buildClient, type Case, measure, pinServer } from './polls/measure.ts'
import { findNginx, startBare, startNginx, type TlsFiles } from './polls/peers.ts'
import { progress } from './print.ts'
import { type Target, TOKEN } from './server-process.ts'

const SIZES = (process.env.BENCH_SIZES ?? '10,1000,10000,100000').split(',').map(Number)
const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 5)
const REQUESTS = Number(process.env.BENCH_REQUESTS ?? 6000)
const WARM_UP_REQUESTS = 20_000
/** Fleet size that is measured beside the peers. */
const PEER_SIZE = SIZES.includes(10_000) ? 10_000 : (SIZES.at(-1) as number)

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-bench-'))
const targets: Target[] = []
try {
  await main()
} finally {
  for (const { child } of targets) child.kill('SIGKILL')
  rmSync(folder, { recursive: true, force: true })
}

async function main(): Promise<void> {
  const client = buildClient(folder)
  const tls = await writeCertificate()
  const cases: Case[] = []
  for (const size of SIZES) cases.push(...(await startFleets(size, tls)))
  cases.push(...(await startPeers(cases, tls)))
  for (const target of targets) pinServer(target)
  for (let round = 0; round <= ROUNDS; round++)
    for (const each of cases) {
      progress(`round ${round} of ${ROUNDS}: ${each.name}`)
      const sample = await measure(client, each, round === 0 ? WARM_UP_REQUESTS : REQUESTS)
      if (round > 0) each.samples.push(sample)
    }
  progress('')
  for (const { name, samples } of cases) {
    const cpu = samples.map((each) => each.cpu).sort((a, b) => a - b)
    const cl = samples.map((each) => each.clientCpu).sort((a, b) => a - b)
    console.log(
      name.padEnd(60),
      cpu.map((each) => each.toFixed(1)).join(' '),
      ' client',
      cl[cl.length >> 1]?.toFixed(1),
    )
  }
}

async function writeCertificate(): Promise<TlsFiles & { readonly ca: string }> {
  const authority = await createAuthority('bench')
  const pair = await authority.issue({ dnsNames: ['localhost'], ipAddresses: ['127.0.0.1'] })
  const write = (name: string, text: string): string => {
    const file = join(folder, name)
    writeFileSync(file, text)
    return file
  }
  return {
    ca: write('ca.pem', authority.pem),
    cert: write('cert.pem', pair.cert),
    key: write('key.pem', pair.key),
  }
}

async function startFleets(size: number, tls: TlsFiles & { readonly ca: string }): Promise<Case[]> {
  const polls = pollsOf(size)
  const shared = join(folder, `polls-${size}-shared`)
  const own = join(folder, `polls-${size}-own`)
  writeFileSync(shared, pollLines(polls, true))
  writeFileSync(own, pollLines(polls, false))
  const cases: Case[] = []
  for (const kind of ['uniform', 'lived-in'] as FleetKind[]) {
    progress(`writing a ${kind} fleet of ${size} clusters`)
    const database = await writeDatabase(folder, size, kind)
    const name = `${kind} ${size}`
    const target = await start(await startOurs(name, database, await findPort()))
    for (const isKept of [false, true]) {
      const style = isKept ? 'kept' : 'new'
      const common = { target, port: target.port, isKept }
      cases.push({ ...common, name: `${name} ${style} shared`, polls: shared, samples: [] })
      if (kind === 'lived-in')
        cases.push({ ...common, name: `${name} ${style} own`, polls: own, samples: [] })
    }
    if (kind === 'lived-in' && size === PEER_SIZE) {
      const secure = await start(
        await startOurs(`${name} tls`, database, await findPort(), tls, await findPort()),
      )
      cases.push({
        name: `${name} TLS own`,
        target: secure,
        port: secure.port,
        polls: own,
        isKept: false,
        ca: tls.ca,
        samples: [],
      })
    }
  }
  return cases
}

async function start(target: Target): Promise<Target> {
  targets.push(target)
  return target
}

async function startPeers(ours: readonly Case[], tls: TlsFiles & { readonly ca: string }): Promise<Case[]> {
  const polls = pollsOf(PEER_SIZE)
  const own = join(folder, `polls-${PEER_SIZE}-own`)
  const { port } = ours.find(({ name }) => name === `lived-in ${PEER_SIZE} new own`) as Case
  const answers = await fetchAll(port, polls)
  const [bareTls, fresh, kept, secure] = await Promise.all([findPort(), findPort(), findPort(), findPort()])
  const bare = await start(await startBare(folder, answers[0] as Buffer, await findPort(), bareTls, tls))
  const on = (name: string, target: Target, at: number, isKept: boolean, ca?: string): Case => ({
    name,
    target,
    port: at,
    isKept,
    polls: own,
    samples: [],
    ...(ca !== undefined && { ca }),
  })
  const cases = [
    on('bare new', bare, bare.port, false),
    on('bare kept', bare, bare.port, true),
    on('bare TLS', bare, bareTls, false, tls.ca),
  ]
  const missing = findNginx()
  if (missing) {
    console.error(`without nginx beside: ${missing}`)
    return cases
  }
  const nginx = await start(await startNginx(folder, polls, answers, { fresh, kept, tls: secure }, tls))
  return [
    ...cases,
    on('nginx new', nginx, fresh, false),
    on('nginx kept', nginx, kept, true),
    on('nginx TLS', nginx, secure, false, tls.ca),
  ]
}

async function fetchAll(port: number, polls: readonly Poll[]): Promise<Buffer[]> {
  const answers: Buffer[] = []
  for (const { path } of polls) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      headers: { authorization: `Bearer ${TOKEN}` },
    })
    if (!response.ok) throw new Error(`${path}: ${response.status}`)
    answers.push(Buffer.from(await response.arrayBuffer()))
  }
  return answers
}
