// The log as it is stored, for mirrors: everything that another store needs to become the same.

import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { NDJSON } from '../../api/media-types.ts'
import { type Detail, fail, invalid, type Result, succeed } from '../../base/problem.ts'
import type { Grant } from '../../domain/access/grant.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import { identityOf } from '../auth/identity.ts'
import { sendProblem } from '../request/problem-response.ts'
import { parseWhole, type RawQuery } from '../request/query.ts'
import type { Service } from '../service.ts'

const COPY = { config: { access: 'mirror', parameters: ['since', 'selector'] } } as const
/** Each may take long, and reads a lot. */
const MAX_COPIES = 100
/** Whoever reads nothing for so long is gone, or may come again. */
const STUCK_MS = 60_000

export function copyLogRoute(app: FastifyInstance, service: Service): void {
  const { engine, types, now, log } = service
  const open = new Set<ServerResponse>()

  /** What is asked for, and never more than what the caller may have. */
  function parseSelection(text: RawQuery[string], { selector: own }: Grant) {
    // Twice the same is the same part, and goes on where it was copied with either of them alone.
    const both = [...new Set([own, text])].filter((part) => part !== undefined).join(',')
    if (both === '') return succeed(undefined)
    const parsed = parseSelector(types, both)
    if (!parsed.ok) return invalid([{ path: '?selector', message: parsed.message }])
    return succeed({ selector: parsed.selector, types })
  }

  app.get<{ Querystring: RawQuery }>('/log', COPY, async (request, reply) => {
    const details: Detail[] = []
    const since = parseWhole(request.query.since, 'since', Number.MAX_SAFE_INTEGER, details) ?? 0
    if (details.length > 0) return sendProblem(reply, invalid(details).problem)
    const selection = parseSelection(request.query.selector, identityOf(request).grant)
    if (!selection.ok) return sendProblem(reply, selection.problem)
    if (open.size >= MAX_COPIES)
      return sendProblem(reply, {
        code: 'unavailable',
        reason: 'too_many_requests',
        message: 'too many copies are being made: try again',
      })
    open.add(reply.raw)
    reply.raw.once('close', () => open.delete(reply.raw))
    const begun = await engine.inspect(async (past): Promise<Result<AsyncGenerator<string>>> => {
      if (since > engine.state.revision) {
        const message = `this is at revision ${engine.state.revision}, before revision ${since}: it is behind, or was set back`
        return fail({ code: 'conflict', reason: 'behind_caller', message })
      }
      const lines = past.export({ since, selection: selection.value, now: now() })
      // What is wrong with the beginning can still be told.
      const first = await lines.next()
      return succeed(joined(first.value as string, lines))
    })
    if (!begun.ok) return sendProblem(reply, begun.problem)
    // Nobody would hold up the reading of a copy that nobody gets.
    if (request.method === 'HEAD') return reply.type(NDJSON).send()
    reply.raw.setTimeout(STUCK_MS, () => reply.raw.destroy())
    const { problem, stalenessMs } = engine.status
    // Whoever copies from what is old itself must not take it for new.
    if (problem !== undefined) reply.header('X-State-Age', Math.round(stalenessMs / 1000))
    const stream = Readable.from(begun.value, { objectMode: false })
    // Without its end, nobody takes it for whole.
    stream.on('error', (err) => log.warn({ err, request_id: request.id }, 'a copy of the log was broken off'))
    return reply.type(NDJSON).send(stream)
  })

  // Whoever is copying goes on elsewhere, or later, from where it was.
  app.addHook('preClose', (done) => {
    for (const response of open) response.destroy()
    done()
  })
}

async function* joined(first: string, lines: AsyncGenerator<string>): AsyncGenerator<string> {
  yield `${first}\n`
  for await (const line of lines) yield `${line}\n`
}
