// How a problem looks on the wire; the one table of status codes.
import type { FastifyReply } from 'fastify'
import type { Problem, ProblemCode } from '../domain/problem.ts'

const STATUS: Record<ProblemCode, number> = {
  validation_error: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  precondition_failed: 412,
  payload_too_large: 413,
  unsupported_media_type: 415,
  internal_error: 500,
  unavailable: 503,
}

const RETRY_AFTER_SECONDS = '5'

export function sendProblem(reply: FastifyReply, { code, message, details }: Problem): FastifyReply {
  if (code === 'unauthorized') reply.header('WWW-Authenticate', 'Bearer realm="flux-resourceset"')
  if (code === 'unavailable') reply.header('Retry-After', RETRY_AFTER_SECONDS)
  const body = { error: code, message, ...(details && details.length > 0 && { details }) }
  return reply.code(STATUS[code]).header('Cache-Control', 'no-store').send(body)
}

/** Failures of the framework, before or around our own code, as problems of ours. */
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
  if (statusCode >= 400 && statusCode < 500) return { code: 'validation_error', message }
  return {
    code: 'internal_error',
    message: `something failed here; the log has more under request id ${requestId}`,
  }
}
