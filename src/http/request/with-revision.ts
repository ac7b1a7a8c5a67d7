// One revision of the log for a caller, or the problem with it: unknown, or pruned.
import type { FastifyRequest } from 'fastify'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import type { Past, RecordedRevision } from '../../engine/past.ts'
import { inspectFor } from '../load/callers.ts'
import type { Service } from '../service.ts'
import { parseRevision } from './query.ts'

/** Which of its changes are read. */
interface ChangePage {
  readonly changeLimit: number
  readonly changeOffset?: number
}

export async function withRevision<T>(
  service: Service,
  request: FastifyRequest,
  text: string,
  page: ChangePage,
  run: (past: Past, recorded: RecordedRevision) => Promise<T>,
): Promise<Result<T>> {
  const parsed = parseRevision(text)
  if (!parsed.ok) return parsed
  const revision = parsed.value
  return inspectFor(service, request, async (past) => {
    const [recorded] = await past.history({ revision, limit: 1, ...page })
    if (recorded) return succeed(await run(past, recorded))
    const known = await past.resolve({ revision: revision - 1 }, 'the revision')
    const isPruned = !known.ok && known.problem.code === 'gone'
    return isPruned ? known : notFound('revision', text)
  })
}
