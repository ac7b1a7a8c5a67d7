// The log as it is stored, for mirrors: everything that another store needs to become the same.
import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { NDJSON } from '../../api/media-types.ts'
import { fail, invalid, type Problem, type Result, succeed } from '../../base/problem.ts'
import type { Grant } from '../../domain/access/grant.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import type { RegisteredTypes } from '../../registry/build-types.ts'
import { identityOf } from '../auth/identity.ts'
import { json, ok, READING } from '../openapi/openapi-operation.ts'
import { inQuery, numberIn, WHOLE } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const SINCE = inQuery('since', 'The newest revision that the caller has; 0 for none.', WHOLE)
const SELECTOR = inQuery('selector', 'Only the log of these clusters; of all when it is empty.', {
  type: 'string',
  format: 'label-selector',
})
/** Concurrent copies: each may take long, and reads much of the store. */
const MAX_COPIES = 100
/** A client that reads nothing for this long is disconnected; it can resume later. */
const STUCK_MS = 60_000
const TOO_MANY: Problem = {
  code: 'unavailable',
  reason: 'too_many_requests',
  message: 'too many copies are being made: try again',
}

export function copyLogRoutes(service: Service): Route[] {
  const { engine, types, log } = service
  const open = new Set<ServerResponse>()
  return [
    route({
      method: 'GET',
      path: '/log',
      access: 'mirror',
      tag: 'revisions',
      id: 'copy_log',
      summary:
        'The log after a revision as it is stored, as lines of JSON, for mirrors; only the last line says that it is whole.',
      description:
        'For tokens of the role mirror or admin. It holds what other roles never see, such as the digests of tokens.',
      parameters: [SINCE, SELECTOR],
      answers: {
        200: {
          ...ok('Lines.', {}, ['X-Request-Id', 'X-State-Age']),
          content: json({ type: 'array', items: { type: 'object' } }, NDJSON),
        },
      },
      problems: [...READING, 409],
      handler: async (request, reply) => {
        const since = numberIn(request.query, SINCE) ?? 0
        const selection = parseSelection(types, request.query.selector, identityOf(request).grant)
        if (!selection.ok) return sendProblem(reply, selection.problem)
        if (open.size >= MAX_COPIES) return sendProblem(reply, TOO_MANY)
        open.add(reply.raw)
        reply.raw.once('close', () => open.delete(reply.raw))
        const begun = await beginCopy(service, since, selection.value)
        if (!begun.ok) return sendProblem(reply, begun.problem)
        // HEAD runs no export: nothing would read it to its end.
        if (request.method === 'HEAD') return reply.type(NDJSON).send()
        reply.raw.setTimeout(STUCK_MS, () => reply.raw.destroy())
        const { problem, stalenessMs } = engine.status
        // A mirror of a stale process must know that its copy is stale.
        if (problem !== undefined) reply.header('X-State-Age', Math.round(stalenessMs / 1000))
        const stream = Readable.from(begun.value, { objectMode: false })
        // The client notices: the end item is missing.
        stream.on('error', (err) =>
          log.warn({ err, request_id: request.id }, 'a copy of the log was interrupted'),
        )
        return reply.type(NDJSON).send(stream)
      },
      // Mirrors resume from where they were, here or at another process.
      onClose: () => {
        for (const response of open) response.destroy()
      },
    }),
  ]
}

/** The selector of the query, combined with that of the caller's grant. */
function parseSelection(types: RegisteredTypes, text: string | undefined, { selector: own }: Grant) {
  // Equal selectors are joined to one, so that the copy continues one made with either of them alone.
  const both = [...new Set([own, text])].filter((part) => part !== undefined).join(',')
  if (both === '') return succeed(undefined)
  const parsed = parseSelector(types, both)
  if (!parsed.ok) return invalid([{ path: '?selector', message: parsed.message }])
  return succeed({ selector: parsed.selector, types })
}

type Selection = Extract<ReturnType<typeof parseSelection>, { ok: true }>['value']

function beginCopy(
  { engine, now }: Service,
  since: number,
  selection: Selection,
): Promise<Result<AsyncGenerator<string>>> {
  return engine.inspect(async (past): Promise<Result<AsyncGenerator<string>>> => {
    if (since > engine.state.revision) {
      const message = `this is at revision ${engine.state.revision}, before revision ${since}: it is behind, or was set back`
      return fail({ code: 'conflict', reason: 'behind_caller', message })
    }
    const lines = past.export({ since, selection, now: now() })
    // A failure before the first line can still be sent as a problem.
    const first = await lines.next()
    return succeed(joined(first.value as string, lines))
  })
}

async function* joined(first: string, lines: AsyncGenerator<string>): AsyncGenerator<string> {
  yield `${first}\n`
  for await (const line of lines) yield `${line}\n`
}
