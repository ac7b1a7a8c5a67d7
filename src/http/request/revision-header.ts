// The header with the revision of the fleet that a response was made from.
import type { FastifyReply } from 'fastify'

export const REVISION_HEADER = 'X-Revision'

/** Takes the revision that was read: the state may have moved on when the response is sent. */
export function setRevision(reply: FastifyReply, revision: number): FastifyReply {
  return reply.header(REVISION_HEADER, revision)
}
