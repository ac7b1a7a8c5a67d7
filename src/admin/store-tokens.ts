// Tokens written directly to the store: for the first admin, and for recovery when all tokens are lost.
import { userInfo } from 'node:os'
import { parseTime } from '../base/time.ts'
import { UsageProblem } from '../base/usage-problem.ts'
import { describeGrant, type Grant, ROLES } from '../domain/access/grant.ts'
import { asToken, TOKENS, useKeyOf, withoutSecrets } from '../domain/access/token.ts'
import type { Command } from '../domain/commands/command.ts'
import { type Engine, startEngine } from '../engine/engine.ts'
import { findToken, newToken } from '../engine/token-secret.ts'
import type { RegisteredTypes } from '../registry/build-types.ts'
import { type Environment, isJson, OUTPUT, openStore, type Print, parse } from './store-commands.ts'

const ACTOR = 'local'

export async function runTokenCommand(
  [command, ...args]: readonly string[],
  env: Environment,
  types: RegisteredTypes,
  print: Print,
): Promise<void> {
  const use: Use = async (write, run) => {
    const engine = await startEngine({ store: openStore(env, { write }), types, now: () => new Date() })
    try {
      return await run(engine)
    } finally {
      await engine.stop()
    }
  }
  if (command === 'create') return create(args, use, print)
  if (command === 'list') return list(args, use, print)
  if (command === 'revoke') return revoke(args, use, print)
  throw new UsageProblem(`there is no command "token ${command ?? ''}": create, list or revoke. See --help`)
}

type Use = <T>(write: boolean, run: (engine: Engine) => Promise<T>) => Promise<T>

async function create(args: readonly string[], use: Use, print: Print): Promise<void> {
  const text = { type: 'string' } as const
  const flags = { output: OUTPUT, role: text, cluster: text, selector: text, types: text, expires: text }
  const { names, output, ...given } = parse(args, flags, true)
  const json = isJson(output)
  const name = nameIn(names)
  const { role, cluster, selector, types, expires } = given as Record<string, string | undefined>
  if (!ROLES.some((known) => known === role))
    throw new UsageProblem(
      `--role must be one of ${ROLES.join(', ')}${role === undefined ? '' : `, not "${role}"`}`,
    )
  const expiresAt = expires === undefined ? undefined : parseTime(expires)
  if (expires !== undefined && expiresAt === undefined)
    throw new UsageProblem(
      `--expires must be an RFC 3339 time such as 2027-01-31T12:00:00Z, not "${expires}"`,
    )
  const grant = {
    role,
    ...(cluster !== undefined && { cluster }),
    ...(selector !== undefined && { selector }),
    ...(types !== undefined && { types: types.split(',') }),
  } as Grant
  const { token, secret } = newToken({ name, grant, expiresAt, createdBy: ACTOR }, new Date())
  await use(true, (engine) => write(engine, { op: 'create_token', token, path: '' }))
  print(json ? JSON.stringify({ ...withoutSecrets(token), secret }) : secret)
}

async function list(args: readonly string[], use: Use, print: Print): Promise<void> {
  const { output } = parse(args, { output: OUTPUT })
  const json = isJson(output)
  await use(false, async ({ state, uses }) => {
    const tokens = [...state.all(TOKENS)].map(({ document }) => asToken(document))
    const used = await uses.of(tokens.map(useKeyOf))
    const rows = tokens
      .map((token) => ({ ...withoutSecrets(token), last_used_at: used.get(useKeyOf(token))?.time ?? null }))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
    if (json) print(JSON.stringify(rows))
    else if (rows.length === 0) print('there are no tokens')
    else
      for (const token of rows) {
        const { name, expires_at, last_used_at } = token
        const until = expires_at ? `until ${expires_at}` : 'never expires'
        print(`${name}: ${describeGrant(token)}, ${until}, last used ${last_used_at ?? 'never'}`)
      }
  })
}

async function revoke(args: readonly string[], use: Use, print: Print): Promise<void> {
  const name = nameIn(parse(args, {}, true).names)
  await use(true, (engine) => {
    const found = findToken(engine.state, name)
    if (!found) throw new UsageProblem(`there is no token "${name}": see token list`)
    const token = asToken(found.document)
    return write(engine, { op: 'revoke_token', id: token.id, name: token.name, path: '' })
  })
  print(`revoked ${name}`)
}

function nameIn([name, ...more]: readonly string[]): string {
  if (name === undefined || more.length > 0)
    throw new UsageProblem('one name of a token is needed: see --help')
  return name
}

async function write(engine: Engine, command: Command): Promise<void> {
  const message = `by ${userName()} on the store`
  const author = { actor: ACTOR, message, request_id: ACTOR, client_address: null }
  const written = await engine.write([command], author)
  if (written.ok) return
  const { message: problem, details = [] } = written.problem
  const lines = details.map(({ path, message: why }) =>
    `${FLAGS[path.split('/')[1] ?? ''] ?? ''} ${why}`.trim(),
  )
  throw new UsageProblem(...(lines.length > 0 ? lines : [problem]))
}

/** The flag that sets each field of a token, so that a problem can name it. */
const FLAGS: Readonly<Record<string, string>> = {
  cluster: '--cluster',
  selector: '--selector',
  types: '--types',
  expires_at: '--expires',
}

/** In a container the user may have a number and no name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `user ${process.getuid?.()}`
  }
}
