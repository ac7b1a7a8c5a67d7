// Creating and rotating tokens: the service shows a secret once, so one that gets lost is reported.
import type { IssuedToken, IssuedTokens, ShownToken } from '../../api/wire-types.ts'
import type { JsonObject } from '../../base/json.ts'
import { GRACE, parseGrace } from '../../domain/access/token.ts'
import { PROGRAM } from '../cli-command.ts'
import { EXIT, Failure, usage } from '../failure.ts'
import type { Session } from '../session.ts'
import type { ApiResponse } from './api.ts'
import { pathOf, TOKEN_ROUTES } from './read-documents.ts'
import { readPages } from './read-pages.ts'
import { sendChange } from './send-change.ts'

export async function createToken(
  session: Session,
  token: JsonObject & { readonly name: string },
  message: string | undefined,
): Promise<IssuedToken> {
  const response = await send(session, '/tokens', token, message)
  return issued(response, `the token "${token.name}" was made`, `token rotate ${token.name} --grace 0s`)
}

export async function rotateToken(
  session: Session,
  name: string,
  grace: string | undefined,
  message: string | undefined,
): Promise<IssuedToken> {
  const response = await send(session, pathOf(TOKEN_ROUTES, name, 'rotate'), grace ? { grace } : {}, message)
  const again = `token rotate ${name}${grace ? ` --grace ${grace}` : ''}`
  return issued(response, `the token "${name}" was rotated`, again)
}

/** Issues the tokens of clusters, in their order. */
export async function issueTokens(
  session: Session,
  clusters: readonly string[],
  grace: string,
  message: string,
): Promise<NonNullable<IssuedTokens['tokens']>> {
  const { body } = await send(session, pathOf(TOKEN_ROUTES, 'issue'), { clusters, grace }, message)
  const { tokens } = body as IssuedTokens
  if (tokens) return tokens
  throw new Failure(
    EXIT.unreachable,
    'the tokens were issued, but their secrets got lost on the way, and are not shown twice',
    { hint: 'the same command issues others' },
  )
}

/** Sends without a preview: no cluster receives anything else. */
async function send(
  session: Session,
  path: string,
  body: JsonObject,
  message: string | undefined,
): Promise<ApiResponse> {
  const flags = { yes: true, ...(message !== undefined && { message }) }
  const { response } = await sendChange(session, flags, { method: 'POST', path, body })
  return response as ApiResponse
}

/** The response to a retry, after the first response got lost, has no secret. */
function issued({ body }: ApiResponse, done: string, next: string): IssuedToken {
  if (typeof body?.secret === 'string') return body
  throw new Failure(EXIT.unreachable, `${done}, but its secret got lost on the way, and is not shown twice`, {
    hint: `${PROGRAM} ${next} gives it another one`,
  })
}

/** Checks a duration before anything is sent. */
export function checkGrace(text: string | undefined, flag: string): void {
  if (text !== undefined && parseGrace(text) === undefined)
    throw usage(`${flag} must be ${GRACE}, not "${text}"`)
}

const PAGE_SIZE = 1000

/** All tokens; one that moves from a page to the next while they are read is there once. */
export async function readTokens(
  { api }: Session,
  query: { readonly role?: string | undefined; readonly cluster?: string | undefined },
): Promise<ShownToken[]> {
  const found = new Map<string, ShownToken>()
  const pages = readPages<ShownToken>(
    ({ limit, offset }) => api.getAsWriter('/tokens', { query: { ...query, limit, offset } }),
    { size: PAGE_SIZE },
  )
  for await (const { items } of pages) for (const token of items) found.set(token.id, token)
  return [...found.values()]
}
