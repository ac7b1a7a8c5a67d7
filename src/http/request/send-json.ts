// JSON responses: short ones at once, long ones streamed at the pace of their reader.
import { createHash, type Hash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { jsonPieces } from '../../base/json-pieces.ts'
import type { Steps } from '../../base/steps.ts'
import { nextSlice, runTimeSliced } from '../../runtime/run-time-sliced.ts'

/** Characters up to which a response is sent whole, with a Content-Length. */
const SHORT = 256 * 1024
/** Characters that a stream passes on at once. */
const CHUNK = 64 * 1024

export function sendJsonInPieces(scope: FastifyInstance): void {
  scope.addHook('preSerialization', async (_request, reply, payload) => {
    reply.serializer((text) => text as string)
    const chunks = chunksOf(payload)
    let text = ''
    for (;;) {
      const { done, value } = await chunks.next()
      if (done) return text
      text += value
      if (text.length > SHORT) return Readable.from(joined(text, chunks), { objectMode: false })
    }
  })
}

async function* joined(first: string, rest: AsyncGenerator<string>): AsyncGenerator<string> {
  yield first
  yield* rest
}

async function* chunksOf(value: unknown): AsyncGenerator<string, undefined> {
  const pieces = jsonPieces(value)
  for (;;) {
    const chunk = await runTimeSliced(nextChunk(pieces))
    if (chunk !== '') yield chunk
    if (chunk.length < CHUNK) return
    await nextSlice()
  }
}

/** Joins pieces to a chunk; only the last chunk may be shorter than CHUNK. */
function* nextChunk(pieces: Iterator<string>): Steps<string> {
  for (let text = ''; ; ) {
    const { done, value } = pieces.next()
    if (done) return text
    text += value
    if (text.length >= CHUNK) return text
    yield
  }
}

/** The digest of a text and a value's JSON behind it. */
export async function digestOf(text: string, value: unknown): Promise<string> {
  const hash: Hash = createHash('sha256').update(text)
  for await (const chunk of chunksOf(value)) hash.update(chunk)
  return hash.digest('hex')
}
