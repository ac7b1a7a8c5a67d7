// Hands what a connection has sent to node:http in slices, each when it is its network's turn.
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import { plainAddress } from '../auth/client-address.ts'
import { networkOf } from '../auth/failure-limit.ts'
import type { FairQueue } from './fair-queue.ts'

/** Node reads up to 64 KiB at once, which can be hundreds of requests: parsing those takes milliseconds. */
const SLICE = 4 * 1024

/**
 * Takes over what is read from now on. Returns a function that adds bytes, as if they had been read now. While there are
 * slices that wait, nothing more is read.
 */
export function paceReads(socket: Socket, turns: FairQueue): (bytes: Buffer) => void {
  const waiting: (Buffer | null)[] = []
  const read = socket._read
  let isWanted = false
  let isScheduled = false
  let network: string | undefined

  const callerOf = (): string => {
    network ??= networkOf(plainAddress(socket.remoteAddress ?? ''))
    return network
  }
  const next = (): void => {
    isScheduled = false
    if (socket.destroyed) waiting.length = 0
    const slice = waiting.shift()
    if (slice === undefined) return
    Readable.prototype.push.call(socket, slice)
    // As the socket does at its end, which is seen only by reading.
    if (slice === null) socket.read(0)
    if (waiting.length > 0) schedule()
    else if (isWanted) {
      isWanted = false
      read.call(socket, 0)
    }
  }
  const schedule = (): void => {
    if (isScheduled) return
    isScheduled = true
    turns.run(callerOf, 0, next)
  }
  const add = (bytes: Buffer | null): boolean => {
    if (bytes === null) waiting.push(null)
    else for (let at = 0; at < bytes.length; at += SLICE) waiting.push(bytes.subarray(at, at + SLICE))
    schedule()
    return waiting.length === 0
  }
  socket.push = add
  socket._read = (size) => {
    if (waiting.length === 0) read.call(socket, size)
    else isWanted = true
  }
  return add
}
