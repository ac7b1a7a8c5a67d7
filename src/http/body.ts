// Bodies: JSON only, in valid UTF-8, holding nothing that no document may hold.
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { checkJson, isObject, type Json } from '../domain/json.ts'
import { fail, invalid, type Result, succeed } from '../domain/problem.ts'
import { sendProblem } from './problem-response.ts'

export const BODY_LIMIT = 4 * 1024 * 1024
export const JSON_TYPE = 'application/json'
export const MERGE_PATCH = 'application/merge-patch+json'
export const JSON_PATCH = 'application/json-patch+json'

export function addBodyParser(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const types = [JSON_TYPE, MERGE_PATCH, JSON_PATCH]
  app.addContentTypeParser(types, { parseAs: 'buffer' }, (request, body, done) => {
    const parsed = parseBody(body as Buffer)
    if (!parsed.ok) request.bodyProblem = parsed.problem
    done(null, parsed.ok ? parsed.value : undefined)
  })
  app.addHook('preValidation', (request, reply, done) => {
    if (request.bodyProblem) sendProblem(reply, request.bodyProblem)
    else done()
  })
}

declare module 'fastify' {
  interface FastifyRequest {
    bodyProblem: import('../domain/problem.ts').Problem | undefined
  }
}

function parseBody(bytes: Buffer): Result<Json | undefined> {
  if (bytes.length === 0) return succeed(undefined)
  let value: Json
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    const key = findPoison(text)
    if (key) {
      return invalid([{ path: '', message: `has the key "${key}": a backslash may stand only before a dot` }])
    }
    value = JSON.parse(text)
  } catch (error) {
    const { message } = error as Error
    return fail({ code: 'validation_error', message: `the body is not valid JSON in UTF-8: ${message}` })
  }
  const details = checkJson(value)
  return details.length > 0 ? invalid(details) : succeed(value)
}

/**
 * A key with a backslash that V8 must not get to see: once it has read one, JSON.parse takes other keys for it whose
 * escaped text begins the same (nodejs/node#63785). Before a dot, as in paths of Helm, there is no such text. A text
 * without an end is one match as well, not a try from every quote in it.
 */
export function findPoison(text: string): string | undefined {
  if (!/\\\\|\\u005c/i.test(text)) return undefined
  for (const [, string = '', colon] of text.matchAll(/"((?:[^"\\]|\\.)*)"?\s*(:?)/g)) {
    if (colon && /\\\\|\\u005c/i.test(string.replaceAll('\\\\.', ''))) return string
  }
  return undefined
}

export function mediaTypeOf({ headers }: FastifyRequest): string {
  return (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** The content types of a route's body, and whether there may be none. */
export function accepts(types: readonly string[], { empty = false } = {}) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    const given = mediaTypeOf(request)
    if (request.body === undefined && given === '') {
      if (empty) done()
      else
        sendProblem(
          reply,
          invalid([{ path: '', message: `is missing: send a body as ${types.join(' or ')}` }]).problem,
        )
    } else if (!types.includes(given)) {
      sendProblem(reply, {
        code: 'unsupported_media_type',
        message: `send ${types.join(' or ')}, not ${given}`,
      })
    } else if (request.body === undefined && !empty) {
      sendProblem(reply, invalid([{ path: '', message: 'is empty: send a JSON body' }]).problem)
    } else {
      done()
    }
  }
}

/** For routes that take everything from the URL: what is in a body must not look as if it counted. */
export function refuseBody(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { body } = request
  const isEmpty = body === undefined || (isObject(body) && Object.keys(body).length === 0)
  const message = 'is not taken here: give what belongs to the request in its URL'
  if (isEmpty) done()
  else sendProblem(reply, invalid([{ path: '', message }]).problem)
}
