// Reading what differs between two moments.
import type { Compared } from '../../api/compared-schema.ts'
import { getNew } from '../fleet/read-status.ts'
import { parseAt } from '../input/moments.ts'
import type { Session } from '../session.ts'

export interface Moments {
  /** A revision or a moment, as somebody has typed it; `now`, or none, is the present. */
  readonly from: string
  readonly to?: string | undefined
  readonly selector?: string | undefined
}

export async function readCompared(
  session: Pick<Session, 'api'>,
  { from, to, selector }: Moments,
): Promise<Compared> {
  const moment = (text: string | undefined, flag: string): string | undefined =>
    text === undefined || text === 'now' ? undefined : parseAt(text, flag)
  const query = { from: moment(from, '--from'), to: moment(to, '--to'), selector }
  const { body } = await getNew(session, '/revisions/compare', query)
  return body
}
