// Who the server takes the caller for: `whoami`, and `token whoami`.
import type { Command } from 'commander'
import type { CallerIdentity } from '../../api/wire-types.ts'
import { fromNow } from '../../base/relative-time.ts'
import { scopeOf } from '../../domain/access/grant.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import type { Look } from '../output/print.ts'
import type { Session } from '../session.ts'

/** Who reads, and who writes where that is another token. */
export async function readCallers({
  api,
  settings,
}: Session): Promise<{ readonly reader: CallerIdentity; readonly writer: CallerIdentity | undefined }> {
  const isOne = settings.readToken === settings.writeToken
  const [reader, writer] = (await Promise.all([
    api.get('/whoami').then(({ body }) => body),
    isOne ? undefined : api.getAsWriter('/whoami').then(({ body }) => body),
  ])) as [CallerIdentity, CallerIdentity | undefined]
  const isSame = !writer || JSON.stringify(writer) === JSON.stringify(reader)
  return { reader, writer: isSame ? undefined : writer }
}

export function whoamiCommand(command: Command, { run }: Tools): void {
  command
    .addHelpText(
      'after',
      `\nWhere changes are made with another token, that one is shown as well.\n\nExamples:\n  ${PROGRAM} whoami\n  ${PROGRAM} whoami -o jsonpath='{.role}'`,
    )
    .action(
      run(async (session) => {
        const { reader, writer } = await readCallers(session)
        await session.print({
          value: writer ? { ...reader, writes_as: writer } : reader,
          names: [reader.name],
          human: (look) =>
            writer
              ? `To read:\n${describeIdentity(look, reader)}\nTo change:\n${describeIdentity(look, writer)}`
              : describeIdentity(look, reader),
        })
      }),
    )
}

const MEANS: Readonly<Record<string, string>> = {
  environment: "a token of the server's own settings",
  token: 'a named token',
  certificate: 'a client certificate',
  oidc: 'a login at the issuer',
}

function describeIdentity({ pairs }: Look, identity: CallerIdentity): string {
  const { name, via, role, expires_at } = identity
  const expires = expires_at ? `${fromNow(expires_at, new Date())} (${expires_at})` : 'never'
  const scope = scopeOf(identity)
  return pairs([
    ['Name:', name],
    ['Role:', role],
    ...(scope ? [['Scope:', scope] as const] : []),
    ['By:', MEANS[via] ?? via],
    ['Expires:', expires],
  ])
}
