// `api`: any request to the server, with the tokens and retries of every other command.
import type { Command } from 'commander'
import type { Json } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { parsePair, setAt } from '../input/field-values.ts'
import { collect } from '../input/option-parsers.ts'
import { readOne } from '../input/read-files.ts'
import type { ApiResponse } from '../server/api.ts'
import type { Session } from '../session.ts'

interface Flags {
  readonly input?: string
  readonly field?: readonly string[]
  readonly header?: readonly string[]
  readonly include?: boolean
}

const WRITES = ['POST', 'PUT', 'PATCH', 'DELETE'] as const

export function defineApi(command: Command, { run }: Tools): void {
  command
    .argument('<method|path>', 'GET, POST, PUT, PATCH or DELETE; GET where only the path is given')
    .argument('[path]', 'such as /clusters?limit=3')
    .option('--input <file>', 'the body: a YAML or JSON file, - for stdin')
    .option('-f, --field <name=value>', 'a member of the body (repeatable); the value may be JSON', collect)
    .option('-H, --header <name:value>', 'a header (repeatable)', collect)
    .option('-i, --include', 'status and headers as well, on stderr')
    .addHelpText(
      'after',
      `\nGET uses the token for reading, other methods the one for writing. A write that is retried is done once.\n\nExamples:\n  ${PROGRAM} api /clusters?limit=3\n  ${PROGRAM} api POST '/clusters?dry_run=true' --input cluster.yaml\n  ${PROGRAM} api PATCH /namespaces/team-a -f 'labels={"team":"a"}' -o jsonpath='{.labels}'`,
    )
    .action(
      run(async (session, first: string, second: string | undefined, flags: Flags) => {
        const [method, path] = second === undefined ? ['GET', first] : [first.toUpperCase(), second]
        if (!path.startsWith('/')) throw usage(`a path begins with a slash, as in /clusters, not "${path}"`)
        const { status, headers, body } = await call(session, method, path, flags)
        if (flags.include) {
          const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
          session.terminal.stderr.write(`HTTP ${status}\n${lines.join('\n')}\n\n`)
        }
        const text = typeof body === 'string' ? body : `${JSON.stringify(body, null, 2)}\n`
        await session.print({ value: body, human: () => text })
      }),
    )
}

async function call(session: Session, method: string, path: string, flags: Flags): Promise<ApiResponse> {
  const { api, terminal } = session
  const body = await bodyOf(flags, () => readOne(terminal, flags.input ?? ''))
  const headers = Object.fromEntries((flags.header ?? []).map(parseHeader))
  if (method === 'GET') {
    if (body !== undefined) throw usage('GET has no body: leave --input and --field out, or name a method')
    return api.get(path, { headers })
  }
  const write = WRITES.find((each) => each === method)
  if (!write) throw usage(`the method must be GET, ${WRITES.join(', ')}, not "${method}"`)
  return api.write(write, path, { headers, ...(body !== undefined && { body }) })
}

async function bodyOf({ input, field }: Flags, read: () => Promise<Json>): Promise<Json | undefined> {
  const start = input === undefined ? undefined : await read()
  return (field ?? []).reduce<Json | undefined>((body, text) => {
    const [name, value] = parsePair(text, '--field')
    return setAt(body, [name], parseJson(value))
  }, start)
}

function parseJson(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function parseHeader(text: string): [name: string, value: string] {
  const at = text.indexOf(':')
  if (at < 1) throw usage(`--header must be name:value, not "${text}"`)
  return [text.slice(0, at).trim().toLowerCase(), text.slice(at + 1).trim()]
}
