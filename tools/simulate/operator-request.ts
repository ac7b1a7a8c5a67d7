// Requests as the Flux Operator, the notification-controller and people send them, each on a connection of its own.
import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { fluxRequest } from '../../bench/load.ts'
import type { JsonObject } from '../../src/base/json.ts'
import type { ClusterAnswer, ClusterRequest, EventRequest } from './exchange.ts'
import { ResponseReader } from './response-reader.ts'

export interface Target {
  readonly host: string
  readonly port: number
  /** Speaks TLS; `ca` is trusted beside the usual authorities, and without one nothing is verified. */
  readonly tls?: { readonly ca?: string } | undefined
  /** Milliseconds without a whole answer after which the connection is dropped. */
  readonly timeoutMs: number
}

/** Sends one request and reads its answer; a connection that fails in any way is dropped. */
export function sendRequest(target: Target, request: ClusterRequest): Promise<ClusterAnswer> {
  return send(target, textOf(target, request))
}

/** The same for any GET. */
export function sendGet(target: Target, path: string, token: string): Promise<ClusterAnswer> {
  return send(target, fluxRequest(path, token, authorityOf(target)))
}

/** What a person or a pipeline sends; of what has a key, repetitions are done once. */
export interface JsonRequest {
  readonly method: string
  readonly path: string
  readonly token: string
  readonly body?: JsonObject | undefined
  readonly key?: string | undefined
}

export function sendJson(target: Target, request: JsonRequest): Promise<ClusterAnswer> {
  return send(target, jsonText(target, request))
}

function send(target: Target, text: string): Promise<ClusterAnswer> {
  return new Promise((resolve) => {
    const socket = open(target)
    const reader = new ResponseReader()
    const end = (answer: ClusterAnswer): void => {
      clearTimeout(timer)
      socket.destroy()
      resolve(answer)
    }
    const drop = (reason: string): void => end({ kind: 'dropped', reason })
    const timer = setTimeout(drop, target.timeoutMs, 'timeout')
    socket.once(target.tls ? 'secureConnect' : 'connect', () => socket.write(text))
    socket.on('error', (error: NodeJS.ErrnoException) => drop(error.code ?? error.message))
    socket.once('close', () => end(reader.end() ?? { kind: 'dropped', reason: 'closed' }))
    socket.on('data', (bytes: Buffer) => {
      try {
        if (reader.push(bytes)) end(reader.answer())
      } catch {
        drop('unreadable')
      }
    })
  })
}

function open({ host, port, tls }: Target): Socket {
  if (!tls) return connect({ host, port, noDelay: true })
  const { ca } = tls
  return connectTls({
    host,
    port,
    servername: 'localhost',
    ALPNProtocols: ['http/1.1'],
    ...(ca === undefined ? { rejectUnauthorized: false } : { ca }),
  }).setNoDelay(true)
}

function authorityOf({ host, port }: Target): string {
  return `${host}:${port}`
}

function textOf(target: Target, request: ClusterRequest): string {
  const authority = authorityOf(target)
  if (request.kind === 'event') return eventRequest(request, authority)
  return fluxRequest(request.path, request.token, authority)
}

function jsonText(target: Target, { method, path, token, body = {}, key }: JsonRequest): string {
  const content = method === 'GET' ? '' : JSON.stringify(body)
  const lines = [
    `${method} ${path} HTTP/1.1`,
    `Host: ${authorityOf(target)}`,
    `Content-Length: ${Buffer.byteLength(content)}`,
    `Authorization: Bearer ${token}`,
    ...(content === '' ? [] : ['Content-Type: application/json']),
    ...(key === undefined ? [] : [`Idempotency-Key: ${key}`, `X-Request-Id: ${key}`]),
    'Connection: close',
  ]
  return `${lines.join('\r\n')}\r\n\r\n${content}`
}

function eventRequest({ path, token, event }: EventRequest, host: string): string {
  const body = JSON.stringify(event)
  const lines = [
    `POST ${path} HTTP/1.1`,
    `Host: ${host}`,
    'User-Agent: Go-http-client/1.1',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `Authorization: Bearer ${token}`,
    'Content-Type: application/json',
    `Gotk-Component: ${event.reportingController}`,
    'Accept-Encoding: gzip',
    'Connection: close',
  ]
  return `${lines.join('\r\n')}\r\n\r\n${body}`
}
