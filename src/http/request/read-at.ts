// Reads with `?at=`: from the state without it, from the log with it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { notFound, type Result, succeed } from '../../base/problem.ts'
import type { Entry } from '../../domain/documents/view.ts'
import type { ResourceType } from '../../domain/types/resource-type.ts'
import type { Past } from '../../engine/past.ts'
import { inspectFor } from '../load/callers.ts'
import type { Service } from '../service.ts'
import type { Query } from './parameters.ts'
import { momentIn } from './query.ts'
import { setRevision } from './revision-header.ts'

interface Reading<T> {
  now(): Result<T> | Promise<Result<T>>
  earlier(past: Past, revision: number): Promise<Result<T>>
}

/** What was read, and the revision of the fleet that it is from. */
export interface ReadAt<T> {
  readonly value: T
  readonly revision: number
}

/** Reads as of `?at=`, and sets the revision header accordingly. */
export async function readAt<T>(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  reading: Reading<T>,
): Promise<Result<ReadAt<T>>> {
  const moment = momentIn(request.query as Query)
  if (!moment) {
    const { revision } = service.engine.state
    return ofRevision(revision, await reading.now())
  }
  return inspectFor(service, request, async (past) => {
    const revision = await past.resolve(moment, '?at')
    if (!revision.ok) return revision
    setRevision(reply, revision.value)
    return ofRevision(revision.value, await reading.earlier(past, revision.value))
  })
}

function ofRevision<T>(revision: number, read: Result<T>): Result<ReadAt<T>> {
  return read.ok ? succeed({ value: read.value, revision }) : read
}

/** Reads one live document. */
export async function readEntry(
  service: Service,
  request: FastifyRequest,
  reply: FastifyReply,
  type: ResourceType,
  id: string,
): Promise<Result<ReadAt<Entry>>> {
  const live = (entry: Entry | undefined): Result<Entry> =>
    entry && !entry.deleted ? succeed(entry) : notFound(type.singular, id)
  return readAt(service, request, reply, {
    now: () => live(service.engine.state.get(type.name, id)),
    earlier: async (past, revision) => live(await past.entry(revision, type.name, id)),
  })
}
