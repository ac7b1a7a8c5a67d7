// Answers polls on the socket itself. Everything else, and every poll that needs more than memory, goes to node:http.
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { FairQueue } from '../load/fair-queue.ts'
import { paceReads } from '../load/pace-reads.ts'
import { type DirectPoll, parsePoll } from './parse-poll.ts'

/** A whole response. */
export interface DirectAnswer {
  readonly bytes: string | Buffer
  /** Of a text. */
  readonly encoding: 'latin1' | 'utf8' | undefined
  readonly closes: boolean
}

export interface DirectPolls {
  /** Undefined for a poll that node:http has to answer: nothing was noted or counted of it. */
  answer(poll: DirectPoll, mustClose: boolean): DirectAnswer | undefined
  callerOf(poll: DirectPoll): string
}

export interface DirectRules {
  readonly polls: DirectPolls
  readonly turns: FairQueue
  readonly isNearlyFull: () => boolean
  /** How long a client may take to begin a request, between two of them, and to read a response. */
  readonly headersMs: number
  readonly keepAliveMs: number
  readonly stalledMs: number
  readonly checkMs: number
  /** Refuses a connection on which no request came. */
  readonly timedOut: (socket: Socket) => void
}

/**
 * Looks at each request before node:http does. A connection that brings anything but a poll is given to node:http, once
 * and for all, with the bytes that it brought.
 */
export function answerDirectly(server: Server, event: 'connection' | 'secureConnection', rules: DirectRules) {
  const [serve] = server.listeners(event) as ((this: Server, socket: Socket) => void)[]
  if (!serve) throw new Error(`node:http does not listen for "${event}"`)
  const open = new OpenConnections()
  server.removeListener(event, serve)
  server.on(event, (socket: Socket) => {
    new DirectConnection(socket, rules, open, () => serve.call(server, socket))
  })
  const closeIdle = server.closeIdleConnections.bind(server)
  const closeAll = server.closeAllConnections.bind(server)
  server.closeIdleConnections = () => {
    open.each((connection) => connection.closeIfIdle())
    closeIdle()
  }
  server.closeAllConnections = () => {
    open.each((connection) => connection.close())
    closeAll()
  }
  const timer = setInterval(() => {
    const now = performance.now()
    open.each((connection) => connection.checkTime(now))
  }, rules.checkMs).unref()
  server.once('close', () => clearInterval(timer))
}

function ignore(): void {}

/**
 * A list in which each connection knows its place. A Set would keep closed connections alive: its earlier tables lead from
 * one to the next, and quick garbage collections take what is old for alive.
 */
class OpenConnections {
  readonly #all: DirectConnection[] = []

  add(connection: DirectConnection): void {
    connection.place = this.#all.push(connection) - 1
  }

  /** The last one takes its place. */
  remove(connection: DirectConnection): void {
    const { place } = connection
    const last = this.#all[place] === connection ? this.#all.pop() : undefined
    if (!last || last === connection) return
    this.#all[place] = last
    last.place = place
  }

  /** Goes backwards, so that a connection may be removed meanwhile. */
  each(run: (connection: DirectConnection) => void): void {
    for (let i = this.#all.length - 1; i >= 0; i--) {
      const connection = this.#all[i]
      if (connection) run(connection)
    }
  }
}

/** A connection that has brought nothing but polls so far. */
class DirectConnection {
  readonly #socket: Socket
  readonly #rules: DirectRules
  readonly #open: OpenConnections
  readonly #serve: () => void
  #awaits: 'first request' | 'turn' | 'next request' | 'end' = 'first request'
  #until: number
  /** Among the open ones. */
  place = -1

  constructor(socket: Socket, rules: DirectRules, open: OpenConnections, serve: () => void) {
    this.#socket = socket
    this.#rules = rules
    this.#open = open
    this.#serve = serve
    this.#until = performance.now() + rules.headersMs
    open.add(this)
    socket.on('data', this.#read)
    socket.on('end', this.#end)
    socket.on('error', this.close)
    socket.on('close', this.#forget)
  }

  readonly close = (): void => {
    this.#socket.destroy()
  }

  closeIfIdle(): void {
    if (this.#awaits === 'next request') this.close()
  }

  checkTime(now: number): void {
    if (now < this.#until || this.#awaits === 'turn') return
    if (this.#awaits !== 'first request') {
      this.close()
      return
    }
    this.#leave()
    this.#rules.timedOut(this.#socket)
  }

  readonly #read = (bytes: Buffer): void => {
    const { polls, turns } = this.#rules
    // What follows a response that has not been read, or that closes the connection, is none of ours.
    const isExpected = this.#awaits !== 'end' && this.#socket.writableLength === 0
    const poll = isExpected ? parsePoll(bytes, this.#socket) : undefined
    if (!poll) {
      this.#giveToNode(bytes)
      return
    }
    let isDone = false
    this.#awaits = 'turn'
    turns.run(
      () => polls.callerOf(poll),
      0,
      () => {
        isDone = true
        this.#answer(poll, bytes)
      },
    )
    // Nothing more is read of a connection that waits for its turn.
    if (!isDone) this.#socket.pause()
  }

  #answer(poll: DirectPoll, bytes: Buffer): void {
    const socket = this.#socket
    const { polls, isNearlyFull, keepAliveMs, stalledMs } = this.#rules
    if (socket.destroyed) return
    const answer = polls.answer(poll, isNearlyFull())
    if (!answer) {
      this.#giveToNode(bytes)
      return
    }
    socket.write(answer.bytes, answer.encoding)
    this.#awaits = answer.closes ? 'end' : 'next request'
    this.#until = performance.now() + (answer.closes ? stalledMs : keepAliveMs)
    if (answer.closes) socket.destroySoon()
    else if (socket.isPaused()) socket.resume()
  }

  #giveToNode(bytes: Buffer): void {
    const socket = this.#socket
    if (this.#awaits === 'end') return
    this.#leave()
    this.#serve()
    // Otherwise node:http reads past the stream. Adding a listener ends that.
    socket.on('data', ignore).off('data', ignore)
    paceReads(socket, this.#rules.turns)(bytes)
    if (socket.isPaused()) socket.resume()
  }

  #leave(): void {
    const socket = this.#socket
    this.#open.remove(this)
    socket.off('data', this.#read)
    socket.off('end', this.#end)
    socket.off('error', this.close)
    socket.off('close', this.#forget)
  }

  /** Responses are sent as a whole, so a client that has said its last word has got them. */
  readonly #end = (): void => {
    this.#socket.end()
  }

  readonly #forget = (): void => {
    this.#open.remove(this)
    // Quick garbage collections would keep the socket, by its listeners.
    this.#socket.removeAllListeners().on('error', ignore)
  }
}
