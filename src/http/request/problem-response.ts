// How a problem looks on the wire; the one table of status codes.
import type { ServerResponse } from 'node:http'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ErrorBody } from '../../api/wire-types.ts'
import type { Problem, ProblemCode } from '../../base/problem.ts'
import type { Impact } from '../../domain/delivery/impact.ts'

export const STATUS: Record<ProblemCode, number> = {
  validation_error: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  plan_changed: 409,
  destructive_change: 409,
  gone: 410,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  idempotency_mismatch: 422,
  rate_limited: 429,
  internal_error: 500,
  unavailable: 503,
}

const RETRY_AFTER_SECONDS = 5

export function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply.code(STATUS[problem.code]).headers(headersOf(problem)).send(bodyOf(problem))
}

/** Sends a problem without Fastify. */
export function writeProblem(response: ServerResponse, problem: Problem): void {
  const body = JSON.stringify(bodyOf(problem))
  const headers = { ...headersOf(problem), 'Content-Type': 'application/json; charset=utf-8' }
  response
    .writeHead(STATUS[problem.code], { ...headers, 'Content-Length': Buffer.byteLength(body) })
    .end(body)
}

function bodyOf({ code, reason, message, details, impact, nextOpen }: Problem): ErrorBody {
  return {
    error: code,
    ...(reason && { reason }),
    message,
    ...(details && details.length > 0 && { details }),
    ...(impact && { impact: impact as Impact }),
    ...(nextOpen !== undefined && { next_open: nextOpen }),
  }
}

function headersOf({ code, retryAfter }: Problem): Record<string, string> {
  return {
    'Cache-Control': 'no-store',
    ...(code === 'unauthorized' && { 'WWW-Authenticate': 'Bearer realm="flux-resourceset"' }),
    ...((code === 'unavailable' || retryAfter !== undefined) && {
      'Retry-After': String(retryAfter ?? RETRY_AFTER_SECONDS),
    }),
  }
}

export function noRoute({ method, url }: FastifyRequest): Problem {
  return { code: 'not_found', reason: 'no_route', message: `no route ${method} ${url.split('?')[0]}` }
}

/** Converts errors of Fastify to problems. */
export function toProblem(
  error: { code?: string; statusCode?: number; message: string },
  requestId: string,
): Problem {
  const { statusCode = 500, message } = error
  if (error.code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE' || statusCode === 415) {
    return { code: 'unsupported_media_type', message: 'send application/json' }
  }
  if (statusCode === 413)
    return { code: 'payload_too_large', message: 'the body is larger than this route takes' }
  // Fastify's own message repeats the URL, which may hold a secret by mistake.
  if (error.code === 'FST_ERR_BAD_URL')
    return { code: 'validation_error', message: 'the path is not well percent-encoded' }
  if (statusCode === 414) return { code: 'validation_error', message: 'a part of the path is too long' }
  if (statusCode >= 400 && statusCode < 500) return { code: 'validation_error', message }
  return internalError(requestId)
}

/** The client sees an id, the log sees everything. */
export function internalError(requestId: string): Problem {
  return {
    code: 'internal_error',
    message: `something failed here; the log has more under request id ${requestId}`,
  }
}
