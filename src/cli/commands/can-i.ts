// `can-i`: whether you may do something, before you try.
import type { Command } from 'commander'
import type { CallerIdentity } from '../../api/wire-types.ts'
import { count } from '../../base/sentences.ts'
import { describeGrant } from '../../domain/access/grant.ts'
import { leastRoleWith, may, type Permission } from '../../domain/access/permissions.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { unmet, usage } from '../failure.ts'
import { clusterNoun, typeNamed } from '../server/nouns.ts'
import { readCallers } from '../server/whoami.ts'
import type { Session } from '../session.ts'

/** What a verb needs. */
const NEEDS: Readonly<Record<string, Permission>> = {
  ...of('read', 'get list describe watch export diff'),
  ...of('preview', 'preview'),
  ...of('write', 'create update edit set patch label assign unassign promote delete restore apply batch'),
  ...of('write', 'revert rollback'),
  ...of('purge', 'purge'),
  ...of('bypass', 'bypass'),
  ...of('poll_any', 'poll'),
  ...of('mirror', 'mirror'),
}

function of(permission: Permission, verbs: string): Record<string, Permission> {
  return Object.fromEntries(verbs.split(' ').map((verb) => [verb, permission]))
}

interface Answer {
  readonly allowed: boolean
  readonly reason: string
}

export function defineCanI(command: Command, { run }: Tools): void {
  command
    .argument('<verb>', `${Object.keys(NEEDS).join(', ')}; or token`)
    .argument('[type]', 'such as component')
    .option('-l, --selector <selector>', 'where the clusters that match are concerned')
    .addHelpText(
      'after',
      `\nPrints yes or no; no exits with 4. A role that is limited by a selector may change definitions as long as only\nclusters which match get anything else: --dry-run tells for one change.\n\nExamples:\n  ${PROGRAM} can-i update component\n  ${PROGRAM} can-i assign component -l environment=prod\n  ${PROGRAM} can-i purge cluster`,
    )
    .action(
      run(async (session, verb: string, given: string | undefined, { selector }: { selector?: string }) => {
        const permission = verb === 'token' ? 'admin' : NEEDS[verb]
        if (!permission)
          throw usage(`"${verb}" is no verb: there are ${Object.keys(NEEDS).join(', ')} and token`)
        const type = given === undefined ? undefined : typeNamed(session.nouns, given)
        if (type !== undefined && !session.nouns.some(({ name }) => name === type))
          throw usage(`"${given}" is no type: there are ${session.nouns.map(({ noun }) => noun).join(', ')}`)
        const { reader, writer } = await readCallers(session)
        const isRead = permission === 'read' || permission === 'poll_any' || permission === 'mirror'
        const caller = isRead ? reader : (writer ?? reader)
        const answer = await answerFor(session, caller, permission, { type, selector })
        await session.print({
          value: { ...answer, verb, ...(type && { type }), as: caller.name, role: caller.role },
          human: () => (answer.allowed ? 'yes\n' : 'no\n'),
        })
        if (answer.reason !== '') session.note(answer.reason)
        if (!answer.allowed) throw unmet('')
      }),
    )
}

interface Asked {
  readonly type: string | undefined
  readonly selector: string | undefined
}

async function answerFor(
  session: Session,
  caller: CallerIdentity,
  permission: Permission,
  { type, selector }: Asked,
): Promise<Answer> {
  const who = `${caller.name} has the ${describeGrant(caller)}`
  if (!may(caller, permission))
    return { allowed: false, reason: `${who}; this needs ${leastRoleWith(permission)}` }
  if (permission !== 'write') return { allowed: true, reason: '' }
  if (type !== undefined && caller.types && !caller.types.includes(type))
    return { allowed: false, reason: `${who}, not for ${type}` }
  if (caller.selector === undefined) return { allowed: true, reason: '' }
  if (selector === undefined)
    return { allowed: true, reason: `where only clusters of (${caller.selector}) get anything else` }
  const outside =
    (await countOf(session, selector)) - (await countOf(session, `${selector},${caller.selector}`))
  if (outside === 0) return { allowed: true, reason: '' }
  return {
    allowed: false,
    reason: `${count(outside, 'cluster')} of (${selector}) outside your scope (${caller.selector})`,
  }
}

async function countOf({ api, nouns }: Session, selector: string): Promise<number> {
  const { headers } = await api.get(`/${clusterNoun(nouns).name}`, { query: { selector, limit: 0 } })
  return Number(headers['x-total-count'])
}
