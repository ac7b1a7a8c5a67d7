// Request bodies: JSON only, in valid UTF-8, without values that no document may hold.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PREVIEW_BODY_LIMIT } from '../../api/limits.ts'
import { JSON_PATCH, JSON_TYPE, MERGE_PATCH } from '../../api/media-types.ts'
import { isObject, type Json } from '../../base/json.ts'
import { findPoison, parseJson } from '../../base/parse-json.ts'
import { fail, invalid, type Problem, type Result, succeed } from '../../base/problem.ts'
import { may } from '../../domain/access/permissions.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { atEnd, callerOf, refuseShare } from '../load/callers.ts'
import type { Service } from '../service.ts'
import { sendProblem } from './problem-response.ts'

/** Bytes from which on a body counts as long. */
const LONG = 64 * 1024
/** The least cost of reading a chunk of a long body. */
const CHUNK_MS = 0.1
const MAX_DROPPED = 1024 * 1024
const LINGER_MS = 1000

export function addBodyParser(app: FastifyInstance, service: Service): void {
  addParser(app, [JSON_TYPE, MERGE_PATCH, JSON_PATCH], (request) => parseBody(service, request))
}

/** For senders whose payloads are not ours to decide: any JSON object is taken, whatever its content type. */
export function addLenientParser(app: FastifyInstance, service: Service): void {
  // Fastify refuses a malformed content type before any parser is asked.
  app.addHook('preParsing', async (request) => {
    if (request.headers['content-type'] !== undefined) request.headers['content-type'] = JSON_TYPE
  })
  addParser(app, '*', async (request) => {
    const read = await readBody(service, request)
    return read.ok ? parseObject(read.value) : read
  })
}

function addParser(
  app: FastifyInstance,
  types: string | string[],
  parse: (request: FastifyRequest) => Promise<Result<Json | undefined>>,
): void {
  app.removeAllContentTypeParsers()
  app.addContentTypeParser(types, async (request: FastifyRequest) => {
    const parsed = await parse(request)
    if (!parsed.ok) request.bodyProblem = parsed.problem
    return parsed.ok ? parsed.value : undefined
  })
  app.addHook('preValidation', (request, reply, done) => {
    if (request.bodyProblem) sendProblem(reply, request.bodyProblem)
    else done()
  })
}

export const NO_OBJECT: Problem = {
  code: 'validation_error',
  reason: 'malformed_json',
  message: 'the body is not a JSON object',
}

/** Keys that V8 must not parse make it an empty object: whoever sent it cannot correct it. */
function parseObject(bytes: Buffer): Result<Json> {
  const text = bytes.toString('utf8').replace(/^\uFEFF/, '')
  if (findPoison(text) !== undefined) return succeed({})
  try {
    const value = JSON.parse(text) as Json
    return isObject(value) ? succeed(value) : fail(NO_OBJECT)
  } catch {
    return fail(NO_OBJECT)
  }
}

declare module 'fastify' {
  interface FastifyRequest {
    bodyProblem: Problem | undefined
  }
}

async function parseBody(service: Service, request: FastifyRequest): Promise<Result<Json | undefined>> {
  const read = await readBody(service, request)
  if (!read.ok) return read
  return read.value.length === 0 ? succeed(undefined) : runTimeSliced(parseJson(read.value))
}

/** Reads a body. Long ones are read in turns by caller: otherwise one connection could fill the event loop with its chunks. */
function readBody(service: Service, request: FastifyRequest): Promise<Result<Buffer>> {
  const { raw, headers } = request
  const { turns } = service.admission
  const caller = callerOf(service, request)
  const limit = limitFor(request)
  const hold = holdBytes(service, request, caller)
  const announced = Number(headers['content-length'] ?? Number.POSITIVE_INFINITY)
  const chunks: Buffer[] = []
  let length = 0
  return new Promise((resolve) => {
    const refuse = (problem: Problem): void => {
      raw.off('data', take)
      leaveRest(request, announced - length)
      resolve(fail(problem))
    }
    const take = (chunk: Buffer): void => {
      length += chunk.length
      const problem = length > limit ? tooLarge(limit) : hold(chunk.length)
      if (problem) return void refuse(problem)
      chunks.push(chunk)
      if (length < LONG) return
      raw.pause()
      turns.run(
        () => caller,
        CHUNK_MS,
        () => raw.resume(),
      )
    }
    if (Number.isFinite(announced) && announced > limit) return refuse(tooLarge(limit))
    if (hasNone(raw)) return resolve(succeed(Buffer.alloc(0)))
    raw.on('data', take)
    raw.once('end', () => resolve(succeed(Buffer.concat(chunks, length))))
    for (const end of ['error', 'close']) raw.once(end, () => resolve(fail(CUT_OFF)))
  })
}

/** Whether there is no body. Node then emits no `end`, see `optimizeEmptyRequests`. */
function hasNone({ headers, httpVersionMajor, readableEnded }: FastifyRequest['raw']): boolean {
  const isAnnounced = 'content-length' in headers || 'transfer-encoding' in headers
  return readableEnded || (httpVersionMajor < 2 && !isAnnounced)
}

/**
 * Reads and drops the rest of a refused body while it is short, so that the connection can be used again. A longer rest is
 * not read. The connection is then closed a moment later: closing it at once would reset it and lose the response.
 */
function leaveRest({ raw }: FastifyRequest, rest: number): void {
  raw.on('data', () => {})
  if (rest <= MAX_DROPPED) return
  raw.pause()
  // Node reads and drops the whole body by itself unless a read has begun.
  while (raw.read() !== null);
  const { socket } = raw
  setTimeout(() => !raw.complete && socket.destroy(), LINGER_MS).unref()
}

const CUT_OFF: Problem = {
  code: 'validation_error',
  reason: 'incomplete_body',
  message: 'the body ended before it was whole',
}

function mayWrite({ identity }: FastifyRequest): boolean {
  return identity !== undefined && may(identity.grant, 'write')
}

function limitFor(request: FastifyRequest): number {
  const { bodyLimit, config } = request.routeOptions
  return config.isReport || mayWrite(request) ? bodyLimit : Math.min(bodyLimit, PREVIEW_BODY_LIMIT)
}

function tooLarge(limit: number): Problem {
  const role = limit === PREVIEW_BODY_LIMIT ? ' from the role viewer' : ''
  const kib = limit / 1024
  const size = kib < 1024 ? `${kib} KiB` : `${kib / 1024} MiB`
  return {
    code: 'payload_too_large',
    message: `the body is larger than this route takes${role}, which is ${size}`,
  }
}

/** Counts the bytes of a caller's bodies until their requests end. */
function holdBytes({ admission }: Service, request: FastifyRequest, caller: string) {
  const shares = mayWrite(request) ? admission.bodyBytes : admission.previewBytes
  let held = 0
  atEnd(request, () => shares.give(caller, held))
  return (bytes: number): Problem | undefined => {
    const taken = shares.take(caller, bytes)
    if (taken !== 'taken') return refuseShare(taken, 'the bodies are too large for now')
    held += bytes
    return undefined
  }
}

export function mediaTypeOf({ headers }: FastifyRequest): string {
  return (headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
}

/** Checks the content type of a route's body, and whether it may be empty. */
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

/** For routes that take everything from the URL: refuses a body, which would otherwise be ignored silently. */
export function refuseBody(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
  const { body } = request
  const isEmpty = body === undefined || (isObject(body) && Object.keys(body).length === 0)
  const message = 'is not taken here: give what belongs to the request in its URL'
  if (isEmpty) done()
  else sendProblem(reply, invalid([{ path: '', message }]).problem)
}
