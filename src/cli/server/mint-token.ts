// Tokens with their secrets, which the service shows once: made, replaced, and never lost without a word.
import type { IssuedToken } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { GRACE, parseGrace } from '../../domain/access/token.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import type { Session } from '../session.ts'
import type { Answer } from './api-client.ts'
import { pathOf, TOKENS } from './read-documents.ts'
import { sendChange } from './send-change.ts'

export async function createToken(
  session: Session,
  token: JsonObject & { readonly name: string },
  message: string | undefined,
): Promise<IssuedToken> {
  const answer = await send(session, '/tokens', token, message)
  return issued(answer, `the token "${token.name}" was made`, `token rotate ${token.name} --grace 0s`)
}

export async function rotateToken(
  session: Session,
  name: string,
  grace: string | undefined,
  message: string | undefined,
): Promise<IssuedToken> {
  const answer = await send(session, pathOf(TOKENS, name, 'rotate'), grace ? { grace } : {}, message)
  const again = `token rotate ${name}${grace ? ` --grace ${grace}` : ''}`
  return issued(answer, `the token "${name}" was rotated`, again)
}

/** There is nothing to preview: no cluster receives anything else. */
async function send(
  session: Session,
  path: string,
  body: JsonObject,
  message: string | undefined,
): Promise<Answer> {
  const flags = { yes: true, ...(message !== undefined && { message }) }
  const { answer } = await sendChange(session, flags, { method: 'POST', path, body })
  return answer as Answer
}

/** The answer to a request that was repeated, because the first answer got lost, has no secret. */
function issued({ body }: Answer, done: string, next: string): IssuedToken {
  if (typeof body?.secret === 'string') return body
  throw new Failure(EXIT.unreachable, `${done}, but its secret got lost on the way, and is not shown twice`, {
    hint: `flux-resourceset-cli ${next} gives it another one`,
  })
}

/** Before anything is sent: what is wrong must not be noticed half way. */
export function checkGrace(text: string | undefined, flag: string): void {
  if (text !== undefined && parseGrace(text) === undefined)
    throw usage(`${flag} must be ${GRACE}, not "${text}"`)
}
