// The servers below the framework: plain, with TLS, with HTTP/2, and how long each of them waits for a client.
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createSecureServer, type Http2SecureServer, type Http2Session } from 'node:http2'
import { createServer as createTlsServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Problem } from '../base/problem.ts'
import { answerDirectly, type DirectPolls } from './direct/direct-polls.ts'
import { limitConnections } from './load/connections.ts'
import type { FairQueue } from './load/fair-queue.ts'
import type { Traffic } from './load/traffic.ts'
import { writeProblem } from './request/problem-response.ts'
import { KEEP_ALIVE_MS, type Limits } from './service-limits.ts'
import type { TlsOptions } from './tls/tls-files.ts'

/** How clients get here, when not over plain HTTP. */
export interface Transport {
  readonly tls?: TlsOptions
  /** HTTP/2 beside HTTP/1.1; only with TLS. */
  readonly http2?: boolean
}

const HANDSHAKE_MS = 10_000
/** How often to look for half-sent requests. */
const CHECK_MS = 2_000
const LINGER_MS = 1_000
/** Longer than any response takes to begin. */
const STALLED_MS = 60_000
/** Pipelined requests that may wait on one connection for the responses before theirs. */
const MAX_PIPELINED = 16

export function createHttpServer(
  limits: Limits,
  transport: Transport,
  turns: FairQueue,
  traffic: Traffic,
  handle: RequestListener,
  polls?: DirectPolls,
): Server {
  const { headersMs = 15_000, requestMs = 30_000, stalledMs = STALLED_MS } = limits
  const { tls, http2 = false } = transport
  const timeouts = {
    headersTimeout: headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    connectionsCheckingInterval: Math.min(CHECK_MS, headersMs),
    // Saves the events of an empty body, which polls do not need.
    optimizeEmptyRequests: true,
  }
  const listener: RequestListener = (request, response) => {
    if (connections.isNearlyFull) response.shouldKeepAlive = false
    if (request.httpVersionMajor >= 2) handle(request, response)
    else if (isAmbiguous(request)) writeProblem(response, AMBIGUOUS)
    else inOrder(request, response, handle)
  }
  const secure = tls && { ...timeouts, handshakeTimeout: HANDSHAKE_MS, ...tls }
  const server = !secure
    ? createServer(timeouts, listener)
    : http2
      ? createHttp2Server(secure, listener, { requestMs, stalledMs })
      : createTlsServer(secure, listener)
  // For responses that are not read; between requests, keepAliveTimeout counts.
  server.timeout = stalledMs
  if (polls && !http2)
    answerDirectly(server, tls ? 'secureConnection' : 'connection', {
      polls,
      turns,
      isNearlyFull: () => connections.isNearlyFull,
      headersMs,
      keepAliveMs: KEEP_ALIVE_MS,
      stalledMs,
      checkMs: timeouts.connectionsCheckingInterval,
      timedOut: (socket) => refuseBrokenRequest({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket),
    })
  const connections = limitConnections(server, turns, traffic, limits)
  return server
}

const AMBIGUOUS: Problem = {
  code: 'validation_error',
  message: 'a request of HTTP/1 names its version and has one Host header',
}

/** Whether a proxy and this server could read the request differently (request smuggling). */
function isAmbiguous({ httpVersionMajor, rawHeaders }: IncomingMessage): boolean {
  if (httpVersionMajor < 1) return true
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] as string
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++
  }
  return hosts > 1
}

/** Handles pipelined requests one after the other: at most one unread response is buffered per connection. */
function inOrder(request: IncomingMessage, response: ServerResponse, handle: RequestListener): void {
  const socket = request.socket as Conversation
  if (socket.destroyed) return
  const last = socket[LAST]
  socket[LAST] = response
  if (!last || last.closed || last.destroyed) {
    socket[WAITING] = 0
    handle(request, response)
    return
  }
  socket[WAITING] = (socket[WAITING] ?? 0) + 1
  if (socket[WAITING] > MAX_PIPELINED) cutOff(socket)
  else
    last.once('close', () => {
      if (socket.destroyed) return
      socket[WAITING] = (socket[WAITING] ?? 1) - 1
      handle(request, response)
    })
}

/** Destroys a connection. Node makes an error for each of its waiting requests; their stack traces are not needed. */
function cutOff(socket: Socket): void {
  let limit = Error.stackTraceLimit
  socket.prependOnceListener('close', () => {
    limit = Error.stackTraceLimit
    Error.stackTraceLimit = 0
  })
  socket.once('close', () => {
    Error.stackTraceLimit = limit
  })
  socket.destroy()
}

/** Node's timeouts are those of HTTP/1.1: sessions and streams get their own. */
function createHttp2Server(
  options: Parameters<typeof createTlsServer>[0],
  listener: RequestListener,
  { requestMs, stalledMs }: { readonly requestMs: number; readonly stalledMs: number },
): Server {
  const server: Http2SecureServer = createSecureServer(
    {
      ...options,
      allowHTTP1: true,
      settings: { maxConcurrentStreams: MAX_STREAMS },
      maxSessionMemory: MAX_SESSION_MIB,
    },
    listener as never,
  )
  const sessions = new Set<Http2Session>()
  server.on('session', (session) => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
    // `close()` would wait for streams that never end.
    session.setTimeout(KEEP_ALIVE_MS, () => session.destroy())
  })
  server.on('stream', (stream) => {
    const timer = setTimeout(() => !stream.readableEnded && stream.close(), requestMs).unref()
    // Node's own timeout of a stream is reset by anything that is sent in its session, such as replies to pings.
    let before = 0
    const progress = setInterval(() => {
      const unsent = stream.writableLength
      if (unsent > 0 && unsent === before) stream.destroy()
      before = unsent
    }, stalledMs).unref()
    stream.once('close', () => {
      clearTimeout(timer)
      clearInterval(progress)
    })
  })
  const close = server.close.bind(server)
  server.close = (done) => {
    for (const session of sessions) session.close()
    return close(done)
  }
  return server as unknown as Server
}

/** Limits of one HTTP/2 session: concurrent streams, and memory; beyond that, new streams are refused. */
const MAX_STREAMS = 100
const MAX_SESSION_MIB = 2

/** The response to the last request of a connection; kept on the socket, which costs next to nothing on every poll. */
const LAST = Symbol('last answer')
/** The number of requests on a connection that wait for earlier responses. */
const WAITING = Symbol('waiting requests')
type Conversation = Socket & { [LAST]?: ServerResponse; [WAITING]?: number }

/** Responds to a request that is not HTTP, is too long or takes too long, and so never reaches a route. */
export function refuseBrokenRequest({ code = '' }: { code?: string }, socket: Socket): void {
  const isHttp = code.startsWith('HPE_') || code === 'ERR_HTTP_REQUEST_TIMEOUT'
  if (!socket.writable || !isHttp) return void socket.destroy()
  const last = (socket as Conversation)[LAST]
  // A client must not take this response for that of an earlier request on the connection.
  if (last?.req.complete && !last.writableFinished) return void last.once('close', () => leave(socket))
  if (last && !last.req.complete && last.headersSent) return void leave(socket)
  const [status, message] = BROKEN_REQUESTS[code] ?? ['400 Bad Request', 'this is not a valid HTTP request']
  const body = JSON.stringify({ error: 'validation_error', message })
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    'Connection: close',
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  leave(socket)
}

/** Ends a connection and destroys it after LINGER_MS: destroying it at once would reset it and lose the response. */
function leave(socket: Socket): void {
  socket.end()
  socket.resume()
  setTimeout(() => socket.destroy(), LINGER_MS).unref()
}

const BROKEN_REQUESTS: Record<string, [string, string]> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'the headers are larger than 16 KiB'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'the request took too long to arrive'],
}
