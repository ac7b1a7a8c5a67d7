// What clusters ask for, every few minutes, for ever. Answered from memory alone.
import { hash } from 'node:crypto'
import { setImmediate as breathe } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { EMPTY_ANSWER, renderClusterLine, renderInputs } from '../../domain/render-inputs.ts'
import { parsePollQuery, type RawQuery } from '../list-query.ts'
import { sendProblem } from '../problem-response.ts'
import type { Service } from '../service.ts'

const BASE = '/api/v2/flux/clusters'
/** Below this an answer fits a packet or two anyway. */
const GZIP_MIN_BYTES = 2048
const LINES_PER_SLICE = 1000

export function pollRoutes(app: FastifyInstance, service: Service): void {
  const { engine, types, metrics } = service
  const config = { access: 'read' } as const

  app.get<{ Params: { dns: string; endpoint: string } }>(
    `${BASE}/:dns/:endpoint`,
    { config },
    (request, reply) => {
      const { dns, endpoint } = request.params
      const type = types.byEndpoint(endpoint)
      if (!type) {
        const known = types.delivered.map(({ delivery }) => delivery.endpoint).join(', ')
        return sendProblem(reply, {
          code: 'not_found',
          message: `no endpoint "${endpoint}": known are ${known}`,
        })
      }
      // Flux keeps what it has on a 404; an empty list would make it delete everything.
      const cluster = engine.state.clusterByDns(dns)
      if (!cluster)
        return sendProblem(reply, { code: 'not_found', message: `no cluster with the DNS name "${dns}"` })
      return sendAnswer(request, reply, renderInputs(engine.state, types, type, cluster))
    },
  )

  app.get<{ Querystring: RawQuery }>(BASE, { config }, async (request, reply) => {
    const clusters = service.types.cluster
    const type = types.get(clusters.type.name)
    const query = type && parsePollQuery(type, request.query)
    if (!query?.ok) return sendProblem(reply, query?.problem ?? { code: 'not_found', message: 'no clusters' })
    const { limit, offset, matches } = query.value
    const found = engine.state.all(clusters.type.name)[Symbol.iterator]()
    const documents = Iterator.from(found)
      .map(({ document }) => document)
      .filter(matches)
      .drop(offset)
      .take(limit)
      .toArray()
    const lines: string[] = []
    for (const document of documents) {
      lines.push(renderClusterLine(clusters, document))
      if (lines.length % LINES_PER_SLICE === 0) await breathe()
    }
    return sendAnswer(request, reply, lines.length === 0 ? EMPTY_ANSWER : `{"inputs":[${lines.join(',')}]}`)
  })

  app.addHook('onResponse', (request, reply, done) => {
    const { endpoint } = request.params as { endpoint?: string }
    const known = endpoint === undefined ? 'clusters' : types.byEndpoint(endpoint) ? endpoint : 'unknown'
    metrics.countPoll(known, reply.statusCode, reply.elapsedTime / 1000)
    done()
  })
}

/** Sends an answer's bytes; `inputs` previews use it too, so that they are the very same. */
export function sendAnswer(request: FastifyRequest, reply: FastifyReply, text: string): FastifyReply {
  const { headers } = request
  let body = Buffer.from(text)
  let etag = `"${hash('sha1', body, 'base64url')}"`
  const compressible = body.length >= GZIP_MIN_BYTES
  if (compressible) reply.header('Vary', 'Accept-Encoding')
  if (compressible && acceptsGzip(headers['accept-encoding'])) {
    body = gzipSync(body, { level: 1 })
    etag = `${etag.slice(0, -1)}-gzip"`
    reply.header('Content-Encoding', 'gzip')
  }
  // Flux opens a connection for every poll and leaves it idle.
  if (headers['user-agent']?.startsWith('flux-operator/')) reply.header('Connection', 'close')
  reply.header('ETag', etag).header('Cache-Control', 'no-store')
  // Only when asked: Flux takes a 304 for a failure.
  if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
  return reply.header('Content-Type', 'application/json').send(body)
}

function acceptsGzip(accepted: string | string[] | undefined): boolean {
  return (
    accepted !== undefined &&
    /(?:^|,)\s*gzip\s*(?:;\s*q=(?:0\.\d*[1-9]\d*|1(?:\.0*)?)\s*)?(?:,|$)/i.test(String(accepted))
  )
}

export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
}
