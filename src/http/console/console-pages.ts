// The web console: its page for every path below /console, its assets, and the settings that it starts with.
import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ConsoleSettings } from '../../api/console-settings.ts'
import { describeTypes } from '../../registry/describe-types.ts'
import { noRoute, sendProblem } from '../request/problem-response.ts'
import type { Login, Service } from '../service.ts'
import { type ConsoleFiles, ENCODINGS, NONCE_PLACEHOLDER } from './console-files.ts'

const OPEN = { config: { access: 'open' } } as const
/** Assets have a digest of their content in their names. */
const FOR_EVER = 'public, max-age=31536000, immutable'
const NONCE_BYTES = 16

export function addConsole(scope: FastifyInstance, service: Service): void {
  const { console: files } = service
  if (!files) return
  const page = sendPage(files, service)
  scope.get('/console', OPEN, page)
  scope.get('/console/*', OPEN, page)
  scope.get<{ Params: { name: string } }>('/console/assets/:name', OPEN, (request, reply) =>
    sendAsset(files, request.params.name, request, reply),
  )
  // Serialised once: the types never change while the process runs.
  let settings: string | undefined
  scope.get('/console/settings.json', OPEN, (_request, reply) => {
    settings ??= JSON.stringify(settingsOf(service))
    return reply.header('Cache-Control', 'no-cache').type('application/json; charset=utf-8').send(settings)
  })
}

function settingsOf({ mode, version, login, types }: Service): ConsoleSettings {
  return {
    mode,
    version,
    ...(login && { login: { issuer: login.issuer, client_id: login.clientId } }),
    types: describeTypes(types),
  }
}

/** The same page for every path: the console's router reads the path in the browser. */
function sendPage({ page }: ConsoleFiles, { login }: Service) {
  return (request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    if (page === undefined)
      return sendProblem(reply, {
        ...noRoute(request),
        message: 'the console is not built here: run npm run build:console, and start the service again',
      })
    const nonce = randomBytes(NONCE_BYTES).toString('base64url')
    return reply
      .headers({
        'Content-Security-Policy': contentSecurityPolicy(nonce, login),
        'Cache-Control': 'no-store',
        'Cross-Origin-Opener-Policy': 'same-origin',
        'Permissions-Policy': 'camera=(), geolocation=(), microphone=()',
      })
      .type('text/html; charset=utf-8')
      .send(page.replaceAll(NONCE_PLACEHOLDER, nonce))
  }
}

function sendAsset(
  { assets }: ConsoleFiles,
  name: string,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const asset = assets.get(name)
  if (!asset) return sendProblem(reply, noRoute(request))
  const accepted = String(request.headers['accept-encoding'] ?? '')
  const encoding = ENCODINGS.find(
    (each) =>
      asset.compressed[each] && new RegExp(`\\b${each}\\b(?!\\s*;\\s*q=0(?:\\.0*)?(?:,|$))`).test(accepted),
  )
  reply.headers({ 'Cache-Control': FOR_EVER, Vary: 'Accept-Encoding' }).type(asset.type)
  if (!encoding) return reply.send(asset.plain)
  return reply.header('Content-Encoding', encoding).send(asset.compressed[encoding])
}

/** Nothing but what comes with the console runs, and it talks to this service and to the issuer alone. */
function contentSecurityPolicy(nonce: string, login: Login | undefined): string {
  const issuer = login ? ` ${new URL(login.issuer).origin}` : ''
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    `connect-src 'self'${issuer}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
}
