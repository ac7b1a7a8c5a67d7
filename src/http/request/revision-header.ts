// The header that says which revision of the fleet an answer was made from.
import type { FastifyReply } from 'fastify'

export const REVISION_HEADER = 'X-Revision'

/** Of what was read before: the state may have moved on when the answer is sent. */
export function setRevision(reply: FastifyReply, revision: number): FastifyReply {
  return reply.header(REVISION_HEADER, revision)
}
