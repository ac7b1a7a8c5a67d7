// docs/cli-reference.md is made from the program itself; `DOCS_UPDATE=1` writes it.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Command } from 'commander'
import { buildTree, createRoot } from '../src/cli/command-tree.ts'
import { type Noun, readNouns } from '../src/cli/server/nouns.ts'
import { buildOpenapi } from '../src/http/openapi/openapi.ts'
import { builtInTypes } from './service.ts'

const PAGE = join(import.meta.dirname, '../docs/cli-reference.md')

const INTRODUCTION = `# Command line reference

Every command of \`flux-resourceset-cli\`, as its \`--help\` has it, for a server with the built-in types. Types of your own
have the same commands, with flags for their own fields. [The command line](cli.md) is the guide. This page is made from
the program: \`DOCS_UPDATE=1 node --test test/cli-reference.test.ts\` writes it.
`

function nounsOf(): readonly Noun[] {
  const openapi = buildOpenapi(builtInTypes(), [], { version: '0' })
  return readNouns(JSON.parse(JSON.stringify(openapi))) ?? []
}

function pathOf(command: Command): string {
  return command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name()
}

/** The help of a command, and of all below it. */
function* sections(command: Command): Generator<string> {
  let help = ''
  command.configureOutput({
    writeOut: (text) => {
      help += text
    },
    getOutHelpWidth: () => 110,
    getOutHasColors: () => false,
  })
  command.outputHelp()
  yield `## ${pathOf(command)}\n\n\`\`\`text\n${help.trimEnd().replaceAll(/ +$/gm, '')}\n\`\`\`\n`
  for (const child of command.commands) if (!child.name().startsWith('__')) yield* sections(child)
}

test('the reference of the command line is what the program says of itself', async () => {
  const context = {
    terminal: { ...process, env: { HOME: '/home/you' } },
    version: '0',
    resources: '',
  }
  const program = createRoot(context)
  const settings = () => assert.fail('help needs no settings')
  const { tools } = buildTree({ program, context, learned: { nouns: nounsOf() }, settings })
  await tools.expand(program)
  const page = [INTRODUCTION, ...sections(program)].join('\n')
  if (process.env.DOCS_UPDATE === '1') writeFileSync(PAGE, page)
  assert.equal(readFileSync(PAGE, 'utf8'), page)
})
