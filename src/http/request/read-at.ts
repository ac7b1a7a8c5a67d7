// Reads that can go back in time: from the state when no moment is asked for, from the past otherwise.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import type { Entry } from '../../domain/documents/view.ts'
import type { ResourceType } from '../../domain/types/resource-type.ts'
import type { Past } from '../../engine/past.ts'
import { inspectFor } from '../load/admission.ts'
import type { Service } from '../service.ts'
import { parseAt, type RawQuery } from './query.ts'

interface Reading<T> {
  now(): Result<T> | Promise<Result<T>>
  earlier(past: Past, revision: number): Promise<Result<T>>
}

/** Reads as of `?at=`; X-Revision says which revision it became. */
export async function readAt<T>(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  reading: Reading<T>,
): Promise<Result<T>> {
  const at = parseAt(request.query as RawQuery)
  if (!at.ok) return at
  const moment = at.value
  if (!moment) return reading.now()
  return inspectFor(service, request, async (past) => {
    const revision = await past.resolve(moment, '?at')
    if (!revision.ok) return revision
    reply.header('X-Revision', revision.value)
    return reading.earlier(past, revision.value)
  })
}

/** One live document. */
export async function readEntry(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  type: ResourceType,
  id: string,
): Promise<Result<Entry>> {
  const live = (entry: Entry | undefined): Result<Entry> =>
    entry && !entry.deleted ? succeed(entry) : notFound(type.singular, id)
  return readAt(service, request, reply, {
    now: () => live(service.engine.state.get(type.name, id)),
    earlier: async (past, revision) => live(await past.entry(revision, type.name, id)),
  })
}
