// The token of a cluster that is bootstrapped.

import type { IssuedToken } from '../../api/wire-types.ts'
import { describeGrant } from '../../domain/access/grant.ts'
import { DEFAULT_GRACE } from '../../domain/access/token.ts'
import { PROGRAM } from '../cli-command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { createToken, readTokens, rotateToken } from './mint-token.ts'
import { pathOf, TOKEN_ROUTES } from './read-documents.ts'
import { Refusal } from './refusal.ts'

/** Creates the token of a cluster, or rotates it; the old secret is valid until the cluster has the new bundle. */
export async function issueClusterToken(
  session: Session,
  id: string,
  grace = DEFAULT_GRACE,
): Promise<IssuedToken> {
  const name = nameFor(id)
  const message = `for the bootstrap of cluster ${id}`
  try {
    return await createToken(session, { name, role: 'cluster', cluster: id }, message)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.status === 403) throw needsAdmin(error, id)
    if (error.status !== 409) throw error
  }
  const { body: known } = await session.api.getAsWriter(pathOf(TOKEN_ROUTES, name))
  // A token of somebody else must not be given to the cluster.
  if (known.role !== 'cluster' || known.cluster !== id)
    throw new Failure(
      EXIT.refused,
      `there is a token "${name}" already, and it is not for polls of this cluster: it has the ${describeGrant(known)}`,
      { hint: `${PROGRAM} token revoke ${name}, if nobody needs it` },
    )
  return rotateToken(session, name, grace, message)
}

/** The names of the tokens of these clusters that are there already, and would be rotated. */
export async function tokensThere(session: Session, ids: readonly string[]): Promise<string[]> {
  try {
    const wanted = new Set(ids.map(nameFor))
    const [only] = ids
    const query = { role: 'cluster', ...(ids.length === 1 && { cluster: only }) }
    const tokens = await readTokens(session, query)
    return tokens.flatMap(({ name }) => (wanted.has(name) ? [name] : []))
  } catch (error) {
    // Whoever may not see tokens may make none: the request for one says so in its own words.
    if (error instanceof Refusal) return []
    throw error
  }
}

function nameFor(cluster: string): string {
  return `cluster-${cluster}`
}

function needsAdmin({ message, details }: Refusal, id: string): Failure {
  return new Failure(
    EXIT.refused,
    '--with-token makes a token for the cluster, which only the role admin may',
    {
      details: [message, ...details],
      hint: `give the token of an admin by FLUX_API_WRITE_TOKEN or --write-token, or leave --with-token out and ask one for: ${PROGRAM} token create cluster-${id} --role cluster --cluster ${id}`,
    },
  )
}
