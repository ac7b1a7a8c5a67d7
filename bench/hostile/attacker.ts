// A process that attacks the service on a port: told what to send as whom, it goes on until it is told to leave.

import { connect, type Socket } from 'node:net'
import { constants, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { CAN_PIN } from '../pin.ts'
import { ATTACKS, type Attack, NUISANCES } from './attacks.ts'

export interface Order {
  readonly port: number
  /** Of attacks or nuisances. */
  readonly names: readonly string[]
  readonly token: string | undefined
  /** Connections of all of them together. */
  readonly connections: number
}

/** How often the service has answered with each status. */
export type Tally = Readonly<Record<string, number>>

const FROM = '127.0.0.2'
const RECONNECT_MS = 10
const HANG_UP_MS = 100
const DRIP_MS = 1000
/** Who reads nothing learns that it was cut off only by writing. */
const NUDGE_MS = 2000

const LAST_CHUNK = Buffer.from('\r\n0\r\n\r\n')

const tally: Record<string, number> = {}
const sockets = new Set<Socket>()
let isOver = false

/** Resolves once the connection is closed, by whomever. */
function hold(socket: Socket, request: Buffer, everyMs: number, more: string): Promise<void> {
  socket.pause()
  socket.once('connect', () => socket.write(request))
  const timer = setInterval(() => socket.writable && socket.write(more), everyMs)
  return closed(socket).finally(() => clearInterval(timer))
}

function drip(socket: Socket, request: Buffer): Promise<void> {
  let at = 0
  socket.resume()
  const next = (): unknown => socket.writable && socket.write(request.subarray(at++, at))
  const timer = setInterval(() => (at < request.length ? next() : socket.write('x')), DRIP_MS)
  return closed(socket).finally(() => clearInterval(timer))
}

function leave(socket: Socket, request: Buffer): Promise<void> {
  socket.resume()
  socket.once('connect', () => {
    socket.write(request)
    setTimeout(() => socket.resetAndDestroy(), HANG_UP_MS)
  })
  return closed(socket)
}

/** A closed loop on one connection. */
function ask(socket: Socket, next: () => Buffer, pauseMs: number): Promise<void> {
  let head = ''
  let left = 0
  let isChunked = false
  const send = (): unknown => socket.writable && !isOver && socket.write(next())
  socket.once('connect', send)
  socket.on('data', (chunk) => {
    if (left > 0) left -= chunk.length
    else {
      head += chunk.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end < 0) return
      const status = head.slice(9, 12)
      tally[status] = (tally[status] ?? 0) + 1
      isChunked = /transfer-encoding: chunked/i.test(head)
      // Without a length it ends with the connection, or with its last chunk.
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? Number.POSITIVE_INFINITY)
      left = length - (head.length - end - 4)
      head = ''
    }
    if (isChunked && (chunk as Buffer).subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)) left = 0
    if (left > 0) return
    left = 0
    if (pauseMs > 0) setTimeout(send, pauseMs)
    else send()
  })
  return closed(socket)
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

function converse(attack: Attack, socket: Socket, next: () => Buffer): Promise<void> {
  if (attack.use === 'hold') return hold(socket, next(), NUDGE_MS, '\r\n')
  if (attack.use === 'drip') return drip(socket, next())
  if (attack.use === 'leave') return leave(socket, next())
  return ask(socket, next, attack.pauseMs ?? 0)
}

/** One connection, and another one whenever it is gone. */
async function keepAttacking(port: number, attack: Attack, next: () => Buffer): Promise<void> {
  await sleep(Math.random() * (attack.pauseMs ?? 0))
  while (!isOver) {
    const localAddress = attack.from ?? FROM
    const socket = connect({ port, host: '127.0.0.1', localAddress, noDelay: true })
    sockets.add(socket)
    socket.on('error', ({ code = 'error' }: NodeJS.ErrnoException) => {
      tally[code] = (tally[code] ?? 0) + 1
    })
    await converse(attack, socket, next)
    sockets.delete(socket)
    await sleep(attack.pauseMs ?? RECONNECT_MS)
  }
}

function attackAll({ port, names, token, connections }: Order): () => void {
  const attacks = [...ATTACKS, ...NUISANCES].filter(({ name }) => names.includes(name))
  const wanted = attacks.reduce((sum, attack) => sum + Math.min(attack.connections, connections), 0)
  const ready = attacks.map((attack) => {
    const make = attack.request(token)
    let n = 0
    const share = Math.min(attack.connections, connections) * Math.min(1, connections / wanted)
    const count = attacks.length === 1 ? attack.connections : Math.ceil(share)
    return { attack, count, next: () => make(n++) }
  })
  return () => {
    for (const { attack, count, next } of ready)
      for (let i = 0; i < count; i++) void keepAttacking(port, attack, next)
  }
}

// The attacker is meant to be elsewhere: what it computes must not be taken from the service.
const { PRIORITY_HIGH, PRIORITY_BELOW_NORMAL } = constants.priority
setPriority(0, CAN_PIN ? PRIORITY_HIGH : PRIORITY_BELOW_NORMAL)
process.once('disconnect', () => process.exit())
process.once('message', (order: Order) => {
  const go = attackAll(order)
  process.send?.('ready')
  process.once('message', () => {
    go()
    process.once('message', () => {
      isOver = true
      for (const socket of sockets) socket.destroy()
      process.send?.(tally, () => process.exit())
    })
  })
})
