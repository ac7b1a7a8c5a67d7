// The tokens of clusters that are bootstrapped.
import { count } from '../../base/sentences.ts'
import { clusterTokenName, DEFAULT_GRACE } from '../../domain/access/token.ts'
import { PROGRAM } from '../cli-command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { issueTokens, readTokens } from './mint-token.ts'
import { Refusal } from './refusal.ts'

/**
 * Issues a token to each cluster, all in one revision; returns the secrets in the same order. Earlier secrets are valid
 * until the clusters have their new bundles.
 */
export async function issueClusterTokens(
  session: Session,
  ids: readonly string[],
  grace = DEFAULT_GRACE,
): Promise<string[]> {
  const [id = ''] = ids
  const whose = ids.length === 1 ? `cluster ${id}` : count(ids.length, 'cluster')
  try {
    const tokens = await issueTokens(session, ids, grace, `for the bootstrap of ${whose}`)
    return tokens.map(({ secret }) => secret)
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    if (error.status === 403) throw needsAdmin(error, id)
    // The messages name the tokens; their places in the request tell nobody anything.
    const told = error.reworded((text) => text.replaceAll(/\/clusters\/\d+:? ?/g, ''))
    if (error.reason !== 'token_exists') throw told
    throw told.withHint(`${PROGRAM} token revoke NAME, if nobody needs it`)
  }
}

/** The names of the tokens of these clusters that are there already, and would be rotated. */
export async function tokensThere(session: Session, ids: readonly string[]): Promise<string[]> {
  try {
    const wanted = new Set(ids.map(clusterTokenName))
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
