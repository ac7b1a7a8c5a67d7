// `token`: who may come in, as what, and until when.

import { type Command, Option } from 'commander'
import type { IssuedToken, ShownToken } from '../../api/wire-types.ts'
import { fromNow } from '../../base/relative-time.ts'
import { describeGrant, ROLE_MEANINGS, ROLES, scopeOf } from '../../domain/access/grant.ts'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { agree, isAsked } from '../input/agree.ts'
import { parseExpiry } from '../input/moments.ts'
import { collectIds } from '../input/option-parsers.ts'
import { checkWriteFlags } from '../input/write-flags.ts'
import type { Look } from '../output/print.ts'
import { plain } from '../output/terminal.ts'
import { checkGrace, createToken, readTokens, rotateToken } from '../server/mint-token.ts'
import { typeNamed } from '../server/nouns.ts'
import { pathOf, TOKEN_ROUTES } from '../server/read-documents.ts'
import { sendChange } from '../server/send-change.ts'
import { whoamiCommand } from '../server/whoami.ts'
import type { Session } from '../session.ts'

export function defineToken(command: Command, tools: Tools): void {
  command.addHelpText(
    'after',
    `\nAll but whoami is for admins. Roles:\n${ROLES.map((role) => `  ${role.padEnd(8)} ${ROLE_MEANINGS[role]}`).join('\n')}`,
  )
  defineCreate(command, tools)
  defineList(command, tools)
  defineRotate(command, tools)
  defineRevoke(command, tools)
  whoamiCommand(
    addSubcommand(command, 'whoami', 'Show who you are to the server, and what you may do.'),
    tools,
  )
}

const MESSAGE = ['-m, --message <text>', 'why it is done; kept with the revision'] as const
const SHOWN_ONCE = 'The secret is on stdout and nothing else; it is shown this once.'

interface CreateFlags {
  readonly role: string
  readonly cluster?: string
  readonly selector?: string
  readonly types?: readonly string[]
  readonly expires?: string
  readonly message?: string
}

function defineCreate(command: Command, { run }: Tools): void {
  addSubcommand(command, 'create', 'Create a token, and show its secret.')
    .argument('<name>', 'what the audit calls whoever uses it')
    .addOption(roleOption('what it is for').makeOptionMandatory())
    .option('--cluster <id>', 'of the role cluster: the one that it polls for')
    .option(
      '-l, --selector <selector>',
      'of an editor: only changes that touch clusters which match; of a mirror: only these',
    )
    .option('--types <types>', 'of an editor: only changes of these types, joined by commas', collectIds)
    .option('--expires <when>', 'until when: 12h, 90d, 2027-01-31 or an RFC 3339 time (default never)')
    .option(...MESSAGE)
    .addHelpText(
      'after',
      `\n${SHOWN_ONCE}\n\nExamples:\n  TOKEN=$(${PROGRAM} token create ci-team-a --role editor --selector team=a --expires 90d)\n  ${PROGRAM} token create cluster-lab-01 --role cluster --cluster lab-01\n  ${PROGRAM} token create docs --role editor --types namespaces,rolebindings -o json`,
    )
    .action(
      run(async (session, name: string, flags: CreateFlags) => {
        const { role, cluster, selector, types, expires, message } = flags
        refuseNames(session)
        const token = {
          name,
          role,
          ...(cluster !== undefined && { cluster }),
          ...(selector !== undefined && { selector }),
          ...(types && { types: types.map((type) => typeNamed(session.nouns, type)) }),
          ...(expires !== undefined && { expires_at: parseExpiry(expires, '--expires', new Date()) }),
        }
        const issued = await createToken(session, token, message)
        await printSecret(session, issued, 'created')
      }),
    )
}

function roleOption(about: string): Option {
  return new Option('--role <role>', about).choices([...ROLES])
}

/** Throws for -o name: a secret that is not printed is lost. */
function refuseNames({ format }: Session): void {
  if (format.kind === 'name') throw usage('the secret would be lost: use another --output')
}

async function printSecret(session: Session, issued: IssuedToken, done: string): Promise<void> {
  const { id, name, secret, expires_at, old_secrets_expire_at: end } = issued
  const now = new Date()
  await session.print({ value: issued, human: () => `${plain(secret)}\n` })
  const until = expires_at === undefined ? 'never expires' : `expires ${fromNow(expires_at, now)}`
  const old = done === 'rotated' ? `; earlier secrets ${end ? `end ${fromNow(end, now)}` : 'are void'}` : ''
  session.note(`token "${name}" (${id}) ${done}: ${describeGrant(issued)}, ${until}${old}`)
  session.note('its secret is shown this once')
}

function defineList(command: Command, { run }: Tools): void {
  addSubcommand(command, 'list', 'List tokens, without their secrets.')
    .addOption(roleOption('only those of this role'))
    .option('--cluster <id>', 'only those of this cluster')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} token list\n  ${PROGRAM} token list --role admin -o wide\n  ${PROGRAM} token list -o jsonpath='{range [*]}{.name}{"\\n"}{end}'`,
    )
    .action(
      run(async (session, { role, cluster }: { role?: string; cluster?: string }) => {
        const tokens = await readTokens(session, { role, cluster })
        await session.print({
          value: tokens,
          names: tokens.map(({ name }) => `tokens/${name}`),
          human: (look) => describeTokens(look, tokens),
        })
        if (tokens.length === 0 && session.format.kind === 'human') session.note('No tokens found.')
      }),
    )
}

function describeTokens({ table, wide }: Look, tokens: readonly ShownToken[]): string {
  if (tokens.length === 0) return ''
  const now = new Date()
  const ago = (time: string | null | undefined, otherwise: string): string =>
    time ? fromNow(time, now) : otherwise
  const rows = tokens.map((token) => [
    token.name,
    token.role,
    scopeOf(token),
    ago(token.expires_at, 'never'),
    String(token.valid_secrets ?? ''),
    ago(token.last_used_at, 'never'),
    token.last_used_from ?? '',
    ...(wide ? [token.id, ago(token.created_at, ''), token.created_by, ago(token.rotated_at, 'never')] : []),
  ])
  const more = wide ? ['ID', 'CREATED', 'BY', 'ROTATED'] : []
  return table(['NAME', 'ROLE', 'SCOPE', 'EXPIRES', 'SECRETS', 'LAST-USED', 'FROM', ...more], rows)
}

function defineRotate(command: Command, { run }: Tools): void {
  addSubcommand(command, 'rotate', 'Give a token a new secret, and show it.')
    .argument('<token>', 'its name or id')
    .option('--grace <duration>', 'how long earlier secrets stay valid: 0s to 90d (default 24h)')
    .option(...MESSAGE)
    .addHelpText(
      'after',
      `\n${SHOWN_ONCE}\n\nExamples:\n  TOKEN=$(${PROGRAM} token rotate ci-team-a)\n  ${PROGRAM} token rotate ci-team-a --grace 0s -m 'it was in a log'`,
    )
    .action(
      run(async (session, name: string, { grace, message }: { grace?: string; message?: string }) => {
        refuseNames(session)
        checkGrace(grace, '--grace')
        await printSecret(session, await rotateToken(session, name, grace, message), 'rotated')
      }),
    )
}

interface RevokeFlags {
  readonly yes?: boolean
  readonly message?: string
}

function defineRevoke(command: Command, { run }: Tools): void {
  addSubcommand(command, 'revoke', 'Revoke tokens: they are rejected from then on.')
    .argument('<token...>', 'their names or ids')
    .option(...MESSAGE)
    .option('-y, --yes', 'do not ask; needed where there is no terminal to ask on')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} token revoke ci-team-a -m 'the team has moved on'\n  ${PROGRAM} token revoke old-1 old-2 --yes`,
    )
    .action(
      run(async (session, names: string[], { yes = false, message }: RevokeFlags) => {
        const flags = { yes: true, ...(message !== undefined && { message }) }
        checkWriteFlags(flags)
        // A token that does not exist is noticed before any other is revoked.
        const tokens = new Map<string, ShownToken>()
        for (const name of names) {
          const { body } = await session.api.getAsWriter(pathOf(TOKEN_ROUTES, name))
          tokens.set(body.id, body)
        }
        if (isAsked(session, { yes })) await askFirst(session, [...tokens.values()])
        const revoked: ShownToken[] = []
        try {
          for (const { id } of tokens.values()) {
            const { response } = await sendChange(session, flags, {
              method: 'DELETE',
              path: pathOf(TOKEN_ROUTES, id),
            })
            revoked.push(response?.body)
          }
        } finally {
          // Revoked tokens are printed, whatever became of the others.
          if (revoked.length > 0) await printRevoked(session, revoked)
        }
      }),
    )
}

async function askFirst(session: Session, tokens: readonly ShownToken[]): Promise<void> {
  const now = new Date()
  const notes = tokens.map((token) => {
    const { name, last_used_at: used, last_used_from: from } = token
    const use = used ? `last used ${fromNow(used, now)} from ${from}` : 'never used'
    return `${name}: ${describeGrant(token)}, ${use}`
  })
  const does = `revoke ${tokens.length === 1 ? 'this token' : `these ${tokens.length} tokens`}`
  await agree(session, { does, word: 'yes', notes }, 'add --yes')
}

async function printRevoked(session: Session, revoked: readonly ShownToken[]): Promise<void> {
  await session.print({
    value: revoked.length === 1 ? revoked[0] : revoked,
    names: revoked.map(({ name }) => `tokens/${name}`),
    human: () => revoked.map(({ name }) => `token "${plain(name)}" revoked\n`).join(''),
  })
}
