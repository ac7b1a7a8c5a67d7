// One HTTP request and its whole response: proxies, timeouts, and why it failed in words.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Env } from '../output/terminal.ts'
import { mayTrustSystem, type TlsSettings, tlsOptions, tlsReason } from './tls-options.ts'

export interface Raw {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** The body of server-sent events, instead of its text. */
  readonly stream?: AsyncIterable<Uint8Array>
}

export interface Outgoing {
  readonly method: string
  readonly headers: Readonly<Record<string, string | number>>
  readonly payload?: Buffer | undefined
}

export interface Sender {
  readonly isProxied: boolean
  /** Redirects are not followed. Server-sent events are returned as a stream where nothing else is accepted. */
  send(target: URL, outgoing: Outgoing): Promise<Raw>
  close(): void
}

export const EVENTS = 'text/event-stream'
/** Idle timeout of a stream; the service sends keep-alives more often. */
const IDLE_MS = 60_000

/** Opens a sender for URLs of one protocol. */
export function openSender(protocol: string, env: Env, timeoutMs: number, tls: TlsSettings = {}): Sender {
  // An import would load these modules with all that they export, the websocket client included: twice the start time.
  const { request, Agent } = process.getBuiltinModule(protocol === 'https:' ? 'node:https' : 'node:http')
  const proxyEnv = proxySettings(env)
  const isSecure = protocol === 'https:'
  const open = (secure: object): InstanceType<typeof Agent> =>
    new Agent({ keepAlive: true, ...secure, ...(proxyEnv && { proxyEnv }) })
  const usual = open(isSecure ? tlsOptions(tls) : {})
  /** Set once the server has turned out to need the CAs of the system. */
  let other: typeof usual | undefined
  const sendBy = (agent: typeof usual, target: URL, { method, headers, payload }: Outgoing): Promise<Raw> => {
    const { promise, resolve, reject } = Promise.withResolvers<Raw>()
    const sent = request(target, { method, headers, agent }, (response) => {
      if (headers.accept === EVENTS && response.headers['content-type']?.startsWith(EVENTS))
        return resolve(streamOf(response))
      readAll(response).then(
        (text) => resolve({ status: response.statusCode ?? 0, headers: response.headers, text }),
        reject,
      )
    })
    const timer = setTimeout(() => {
      reject(new TimeoutError(timeoutMs))
      sent.destroy()
    }, timeoutMs)
    sent.on('error', reject).end(payload)
    return promise.finally(() => clearTimeout(timer))
  }
  return {
    isProxied: proxyEnv !== undefined,
    async send(target, outgoing) {
      if (!other) {
        try {
          return await sendBy(usual, target, outgoing)
        } catch (error) {
          if (!isSecure || !mayTrustSystem(tls, error)) throw error
        }
      }
      // The handshake failed, so nothing of the request was sent.
      other ??= open(tlsOptions(tls, { system: true }))
      return sendBy(other, target, outgoing)
    },
    close() {
      usual.destroy()
      other?.destroy()
    },
  }
}

/** The environment with proxies, undefined where it has none; like curl, one without a scheme is HTTP. */
function proxySettings(env: Env): Record<string, string | undefined> | undefined {
  const names = Object.keys(env).filter((name) => /^https?_proxy$/i.test(name) && env[name])
  if (names.length === 0) return undefined
  const withScheme = names.map((name) => [
    name,
    env[name]?.includes('://') ? env[name] : `http://${env[name]}`,
  ])
  return { ...env, ...Object.fromEntries(withScheme) }
}

function readAll(response: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    response.on('data', (chunk: Buffer) => chunks.push(chunk))
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    response.on('error', reject)
  })
}

function streamOf(response: IncomingMessage): Raw {
  response.setTimeout(IDLE_MS, () => response.destroy(new TimeoutError(IDLE_MS)))
  return { status: response.statusCode ?? 0, headers: response.headers, text: '', stream: response }
}

class TimeoutError extends Error {
  readonly code = 'ETIMEDOUT'
  constructor(ms: number) {
    super(`no answer within ${ms / 1000} s`)
  }
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused: nothing listens there',
  ECONNRESET: 'the connection was cut',
  EPIPE: 'the connection was cut',
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the host name could not be looked up',
  EHOSTUNREACH: 'no route to the host',
  ENETUNREACH: 'the network cannot be reached',
  HPE_INVALID_CONSTANT: 'what answers does not speak HTTP',
  EPROTO: 'what answers does not speak TLS: is it http instead of https?',
}

/** Why no response came. */
export function explain(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return REASONS[code] ?? tlsReason(error) ?? (message || code)
}

/** Status, content type and redirect of an unexpected response. */
export function describeResponse({ status, headers }: Raw): string {
  const type = String(headers['content-type'] ?? 'no content type').split(';')[0]
  const where = headers.location ? `, and points to ${headers.location}` : ''
  return `HTTP ${status}, ${type}${where}`
}
