// The id of a request in logs, audit and responses.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** A caller's own id, when it is fit for a log, or a new one. */
export function requestId({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id']
  return typeof given === 'string' && /^[\w.:/+=-]{1,128}$/.test(given) ? given : randomUUID()
}
