// `logout`: forgets the tokens of a context.
import type { Command } from 'commander'
import { PROGRAM, type Tools } from '../cli-command.ts'
import {
  type Context,
  hasContext,
  loadContexts,
  unknownContext,
  updateContexts,
  withoutTokens,
} from '../config/contexts.ts'
import type { GlobalFlags } from '../config/settings.ts'
import { usage } from '../failure.ts'

export function defineLogout(command: Command, { program, context: { terminal } }: Tools): void {
  command
    .addHelpText(
      'after',
      `\nThe context keeps its URL. A token is good for others until it is revoked: ${PROGRAM} token revoke NAME\n\nExamples:\n  ${PROGRAM} logout\n  ${PROGRAM} logout --context prod`,
    )
    .action(async () => {
      const { env, stderr } = terminal
      const { context, apiUrl, quiet } = program.opts<GlobalFlags>()
      if (apiUrl !== undefined) throw usage('logout is from a context: give --context NAME')
      const file = loadContexts(env)
      const name = context ?? file.current_context
      if (name === undefined) throw usage('there is no context in use: give --context NAME')
      if (!hasContext(file, name)) throw unknownContext(file, name)
      await updateContexts(env, ({ contexts, ...rest }) => ({
        ...rest,
        contexts: { ...contexts, [name]: withoutTokens(contexts[name] as Context) },
      }))
      if (!quiet) stderr.write(`context "${name}" holds no tokens any more\n`)
    })
}
