// One row of the tables: a service of its own, an attack on it, and what is left when the attacker has gone.
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { CAN_PIN, pin, SERVER_CORE } from '../pin.ts'
import { residentMegabytes, startService, startTarget, stopTarget, type Target } from '../server-process.ts'
import { NUISANCES } from './attacks.ts'
import { Client } from './client-process.ts'
import type { Watch } from './observer.ts'
import { type After, isAnswered, missedBy, type Sample, type Seen, TARGETS } from './verdict.ts'

/** What is the same for all rows. */
export interface Setting {
  readonly database: string
  /** A file with the answer to a poll, for a bare server. */
  readonly answer: string
  readonly port: number
  readonly clusters: number
  readonly patienceMs: number
  /** Of an attacker who sends several attacks at once. */
  readonly connections: number
  readonly observer: Client
}

export interface Row {
  readonly name: string
  /** None for an idle service. */
  readonly attacks: readonly string[]
  readonly token: string | undefined
  readonly hasNuisances: boolean
  readonly seconds: number
  /** How long what an attacker leaves behind may stay; without, it is looked at once and not judged. */
  readonly afterSeconds?: number
  readonly idleP99: number
  /** Attacks a bare node:http server instead of the service: what is as slow there is not the service's doing. */
  readonly isBare?: boolean
}

export const RATE = 100
const WARM_UP = { rate: 500, seconds: 1 }
const WINDOW = { seconds: 2, isAdminThere: true }
/** So many windows without any answer, and it is not waited for more. */
const MOST_SILENT = 3
const LOOK_MS = 1000
const LEAVE_MS = 5000
const SAMPLE_MS = 250
/** Beyond it the service is stopped, for the sake of the machine. */
const MOST_MB = 4096
/** 127.0.0.2, as /proc writes it. */
const ATTACKER = '0200007F'
/** ESTABLISHED and CLOSE_WAIT: those that the service holds. */
const HELD = ['01', '08']

export async function measureRow(setting: Setting, row: Row): Promise<Seen> {
  const { port } = setting
  const target = await startFor(setting, row)
  if (CAN_PIN) pin(target.child.pid as number, SERVER_CORE)
  const memory = watchMemory(target)
  const isAdminThere = !row.isBare
  const clients: Client[] = []
  const start = async (attacks: readonly string[], token?: string): Promise<Client> => {
    const client = new Client('attacker.ts')
    clients.push(client)
    await client.prepare({ port, names: attacks, token, connections: setting.connections })
    return client
  }
  try {
    await observe(setting, { ...WARM_UP, isAdminThere })
    const names = NUISANCES.map(({ name }) => name)
    if (row.hasNuisances) await start(names)
    const attacker = row.attacks.length > 0 ? await start(row.attacks, row.token) : undefined
    for (const client of clients) client.tell('go')
    const sampling = observeWhileAlive(setting, target, { seconds: row.seconds, isAdminThere })
    await Promise.race([sleep(row.seconds * 1000), once(target.child, 'exit')])
    const left = performance.now()
    const tally = await attacker?.leave(LEAVE_MS)
    const sample = await sampling
    const after = attacker && isAdminThere ? await awaitEnd(setting, target, row, left) : undefined
    const others = row.hasNuisances ? await clients[0]?.leave(LEAVE_MS) : undefined
    const answers = tally ?? others ?? {}
    const { name, isBare = false } = row
    return { name, isBare, sample, rssMb: memory.peak(), death: memory.death(), after, answers }
  } finally {
    for (const client of clients) client.kill()
    memory.stop()
    await stopTarget(target)
  }
}

function startFor({ database, answer, port }: Setting, { isBare }: Row): Promise<Target> {
  if (isBare) return startTarget('bare node:http', 'bare-server.ts', [answer, String(port)], port, {})
  return startService('the service', database, port, 'ignore')
}

type Window = Pick<Watch, 'seconds' | 'isAdminThere'>

function observe(setting: Setting, window: Window & Pick<Watch, 'rate'>): Promise<Sample> {
  const { observer, port, clusters, patienceMs } = setting
  return observer.observe({ port, clusters, patienceMs, ...window })
}

async function observeWhileAlive(setting: Setting, { child }: Target, window: Window): Promise<Sample> {
  const stop = (): void => setting.observer.tell('stop')
  child.once('exit', stop)
  try {
    return await observe(setting, { rate: RATE, ...window })
  } finally {
    child.off('exit', stop)
  }
}

/** Looks until nothing is left, that has taken too long, or there is no hope. */
async function awaitEnd(
  setting: Setting,
  target: Target,
  { afterSeconds, idleP99 }: Row,
  left: number,
): Promise<After | undefined> {
  const isLook = afterSeconds === undefined
  const patienceMs = isLook ? LOOK_MS : setting.patienceMs
  for (let silent = 0; memoryOf(target); ) {
    const sample = await observeWhileAlive({ ...setting, patienceMs }, target, WINDOW)
    const rssMb = memoryOf(target)?.now
    if (rssMb === undefined) return undefined
    const connections = connectionsTo(setting.port)
    const seconds = (performance.now() - left) / 1000
    const after = { seconds, sample, connections, rssMb }
    if (isLook) return after
    const isGone = connections === 0 && rssMb <= TARGETS.rssMb && missedBy(sample, idleP99).length === 0
    silent = isAnswered(sample.polls) ? 0 : silent + 1
    if (isGone || seconds >= afterSeconds || silent === MOST_SILENT) return { ...after, isGone }
  }
  return undefined
}

/** Of the attacker, as the service sees them. */
function connectionsTo(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  return lines.filter((line) => {
    const [, from, to, state] = line.trim().split(/\s+/)
    return from?.endsWith(local) && to?.startsWith(ATTACKER) && HELD.includes(state ?? '')
  }).length
}

/** Nothing once the process is gone. */
function memoryOf(target: Target): { now: number; peak: number } | undefined {
  try {
    const memory = residentMegabytes(target)
    return Number.isNaN(memory.now) ? undefined : memory
  } catch {
    return undefined
  }
}

/** The most memory that it has had so far, what it died of if it did, and an end to it before the machine's. */
function watchMemory(target: Target) {
  const { child } = target
  let peak = 0
  let isTooLarge = false
  const timer = setInterval(() => {
    const memory = memoryOf(target)
    peak = Math.max(peak, memory?.peak ?? 0)
    if (memory === undefined || memory.now < MOST_MB) return
    isTooLarge = true
    child.kill('SIGKILL')
  }, SAMPLE_MS)
  return {
    peak: () => Math.max(peak, memoryOf(target)?.peak ?? 0),
    death: () => {
      if (isTooLarge) return `stopped at ${MOST_MB} MB`
      // What V8 does when its heap is full.
      if (child.signalCode === 'SIGABRT') return 'died: out of memory'
      const end = child.signalCode ?? child.exitCode
      return end === null ? undefined : `died: ${end}`
    },
    stop: () => clearInterval(timer),
  }
}
