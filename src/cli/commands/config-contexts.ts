// `config`: servers and their tokens under names, so that nothing has to be exported or typed.
import { type Command, Option } from 'commander'
import { addSubcommand, PROGRAM, type Tools } from '../cli-command.ts'
import {
  ASK,
  type Ask,
  type Context,
  type ContextFile,
  configPath,
  hasContext,
  type IssuerLogin,
  loadContexts,
  permissionWarning,
  unknownContext,
  updateContexts,
} from '../config/contexts.ts'
import { type GlobalFlags, parseToken, parseUrl } from '../config/settings.ts'
import { tlsFields, tlsKept } from '../config/tls-fields.ts'
import { unmet, usage } from '../failure.ts'
import { linesFor } from '../input/token-files.ts'
import { type Printable, parseFormat, render } from '../output/print.ts'
import type { Terminal } from '../output/terminal.ts'

/** What the subcommands share: the file of contexts, and where messages go. */
interface ConfigTools {
  readonly terminal: Terminal
  flags(): GlobalFlags
  load(): ContextFile
  update(change: (file: ContextFile) => ContextFile): Promise<void>
  note(text: string): void
}

export function defineConfig(command: Command, { program, context: { terminal } }: Tools): void {
  const flags = (): GlobalFlags => program.opts<GlobalFlags>()
  const note = (text: string): void => {
    if (!flags().quiet) terminal.stderr.write(`${text}\n`)
  }
  const config: ConfigTools = {
    terminal,
    flags,
    note,
    load() {
      const warning = permissionWarning(terminal.env)
      if (warning) note(`Warning: ${warning}`)
      return loadContexts(terminal.env)
    },
    update: (change) => updateContexts(terminal.env, change),
  }
  command.addHelpText(
    'after',
    () =>
      `\nThe file is ${configPath(terminal.env) ?? 'below your HOME'}, readable by you alone. Flags and the variables FLUX_API_URL,\nFLUX_API_TOKEN, FLUX_API_WRITE_TOKEN and FLUX_API_ASK come before it.`,
  )
  defineSetContext(command, config)
  defineUseContext(command, config)
  defineCurrentContext(command, config)
  defineRenameContext(command, config)
  defineDeleteContext(command, config)
  defineGetContexts(command, config)
  defineView(command, config)
}

function defineSetContext(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'set-context', 'Add a server under a name, or change its settings.')
    .argument('<name>', 'how you call it')
    .option('--allow-http', 'no warning that its URL is plain http')
    .option('--no-allow-http', 'warn of that again')
    .addOption(
      new Option('--ask <when>', 'whether changes have to be agreed to; never is for pipelines').choices(ASK),
    )
    .addHelpText(
      'after',
      `\nGive --api-url, and the tokens by --api-token-file and --write-token-file; - reads them from stdin, one line for each.\nTokens given by --api-token and --write-token show in process lists and in the shell history. An empty token is removed.\n\nExamples:\n  ${PROGRAM} config set-context demo --api-url http://127.0.0.1:8080 --api-token demo-read-token --write-token demo-write-token\n  ${PROGRAM} config set-context prod --api-url https://flux-api.example.com --api-token-file ~/flux-token\n  pass flux/prod | ${PROGRAM} config set-context prod --api-url https://flux-api.example.com --api-token-file -`,
    )
    .action(
      async (name: string, { allowHttp, ask }: { readonly allowHttp?: boolean; readonly ask?: Ask }) => {
        if (name.trim() === '') throw usage('a context needs a name')
        const { apiUrl, apiToken, writeToken } = config.flags()
        const tls = tlsFields(config.flags())
        const known = contextIn(config.load(), name)
        const url = apiUrl ?? known?.api_url
        if (url === undefined) throw usage(`the new context "${name}" needs --api-url`)
        parseUrl(url, '--api-url')
        const lines = await linesFor(config.terminal, [apiToken, writeToken])
        const given = (token: string | undefined, flag: string): string | undefined =>
          token === undefined ? undefined : (parseToken(token === '-' ? lines.shift() : token, flag) ?? '')
        const tokens = [given(apiToken, '--api-token'), given(writeToken, '--write-token')] as const
        let isCurrent = false
        await config.update((file) => {
          const old = contextIn(file, name)
          const { api_token, write_token, login } = old ?? {}
          const [read = api_token, write = write_token] = tokens
          const context = {
            api_url: url,
            ...(read && { api_token: read }),
            ...(write && { write_token: write }),
            ...tlsKept(old),
            ...tls,
            // A token takes the place of a login.
            ...(login && !tokens.some(Boolean) && { login }),
            ...((allowHttp ?? (old?.api_url === url && old.allow_http)) && { allow_http: true }),
            ...((ask ?? (old?.api_url === url && old.ask)) === 'never' && { ask: 'never' as const }),
          }
          const current_context = file.current_context ?? name
          isCurrent = current_context === name
          return { ...file, current_context, contexts: { ...file.contexts, [name]: context } }
        })
        config.note(`context "${name}" ${known ? 'changed' : 'added'}${isCurrent ? ', and in use' : ''}`)
      },
    )
}

function contextIn(file: ContextFile, name: string): Context | undefined {
  return hasContext(file, name) ? file.contexts[name] : undefined
}

function defineUseContext(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'use-context', 'Use this context from now on.')
    .argument('<name>', 'one of get-contexts')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} config use-context prod`)
    .action(async (name: string) => {
      needContext(config.load(), name)
      await config.update((file) => ({ ...file, current_context: name }))
      config.note(`context "${name}" is in use`)
    })
}

function defineCurrentContext(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'current-context', 'Show the context in use.')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} config current-context`)
    .action(async () => {
      const file = config.load()
      const { current_context: name } = file
      if (!hasContext(file, name)) throw unmet(`no context is in use: ${PROGRAM} config use-context NAME`)
      await print(config, { value: name, names: [name], human: () => `${name}\n` })
    })
}

function defineRenameContext(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'rename-context', 'Call a server by another name.')
    .argument('<name>', 'one of get-contexts')
    .argument('<new-name>', 'its name from now on')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} config rename-context flux-api.example.com prod`)
    .action(async (name: string, other: string) => {
      if (other.trim() === '') throw usage('a context needs a name')
      needContext(config.load(), name)
      await config.update((file) => {
        if (hasContext(file, other)) throw usage(`there is a context "${other}" already`)
        const contexts = Object.entries(file.contexts).map(([each, context]) => [
          each === name ? other : each,
          context,
        ])
        const isCurrent = file.current_context === name
        return {
          ...file,
          ...(isCurrent && { current_context: other }),
          contexts: Object.fromEntries(contexts),
        }
      })
      config.note(`context "${name}" is called "${other}" now`)
    })
}

function defineDeleteContext(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'delete-context', 'Delete a context and its tokens.')
    .argument('<name>', 'one of get-contexts')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} config delete-context old`)
    .action(async (name: string) => {
      needContext(config.load(), name)
      await config.update((file) => {
        const { [name]: _gone, ...contexts } = file.contexts
        const { current_context, ...rest } = file
        const isOther = current_context !== undefined && current_context !== name
        return { ...rest, ...(isOther && { current_context }), contexts }
      })
      config.note(`context "${name}" is forgotten`)
    })
}

function defineGetContexts(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'get-contexts', 'List contexts: servers by name.')
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} config get-contexts\n  ${PROGRAM} config get-contexts -o name`,
    )
    .action(async () => {
      const file = redact(config.load())
      const entries = Object.entries(file.contexts)
      const rows = entries.map(([name, { api_url, api_token, write_token, login }]) => [
        name === file.current_context ? '*' : '',
        name,
        api_url,
        [api_token && 'read', write_token && 'write', login && 'login'].filter(Boolean).join(', '),
      ])
      await print(config, {
        value: file,
        names: entries.map(([name]) => name),
        human: ({ table }) =>
          rows.length === 0
            ? `No contexts yet: see ${PROGRAM} config set-context --help\n`
            : table(['CURRENT', 'NAME', 'API-URL', 'TOKENS'], rows),
      })
    })
}

function defineView(command: Command, config: ConfigTools): void {
  addSubcommand(command, 'view', 'Show the whole file, without its tokens.')
    .addHelpText('after', `\nExamples:\n  ${PROGRAM} config view -o yaml`)
    .action(async () => {
      const file = redact(config.load())
      const human = (): string => `${JSON.stringify(file, null, 2)}\n`
      await print(config, { value: file, names: Object.keys(file.contexts), human })
    })
}

async function print({ terminal, flags }: ConfigTools, result: Printable): Promise<void> {
  const { output, headers = true } = flags()
  terminal.stdout.write(await render(terminal, await parseFormat(output), headers, result))
}

function needContext(file: ContextFile, name: string): void {
  if (!hasContext(file, name)) throw unknownContext(file, name)
}

const HIDDEN = '(set)'

function redact(file: ContextFile): ContextFile {
  const contexts = Object.entries(file.contexts).map(([name, context]) => {
    const { api_url, api_token, write_token, login, allow_http, ask } = context
    const shown: Context = {
      api_url,
      ...(api_token && { api_token: HIDDEN }),
      ...(write_token && { write_token: HIDDEN }),
      ...(login && { login: redactLogin(login) }),
      ...tlsKept(context),
      ...(allow_http && { allow_http }),
      ...(ask && { ask }),
    }
    return [name, shown]
  })
  return { ...file, contexts: Object.fromEntries(contexts) }
}

function redactLogin({ expires_at, refresh_token, token_endpoint, client_id }: IssuerLogin): IssuerLogin {
  return {
    token: HIDDEN,
    ...(expires_at && { expires_at }),
    ...(refresh_token && { refresh_token: HIDDEN }),
    token_endpoint,
    client_id,
  }
}
