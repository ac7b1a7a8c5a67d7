// The real programs of Flux and Kubernetes that tests run: what tools/flux/install.sh puts into .tools/bin.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import { parse, parseAllDocuments } from 'yaml'

type Tool = 'controllers' | 'flux-operator' | 'helm' | 'kubectl'

interface ToolRun {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface ToolOptions {
  readonly input?: string
  readonly cwd?: string
}

/** Where the programs keep what they keep, and no cluster: the settings of whoever runs the tests stay out. */
const home = mkdtempSync(join(tmpdir(), 'flux-resourceset-tools-'))
after(() => rmSync(home, { recursive: true, force: true }))
const env = {
  PATH: process.env.PATH,
  HOME: home,
  KUBECONFIG: '/dev/null',
  GOGC: 'off', // they end within a second: collecting garbage takes half of it
}

export function toolPath(tool: Tool): string {
  const path = join(import.meta.dirname, '../../.tools/bin', tool)
  if (!existsSync(path)) throw new Error(`${tool} is not installed: run \`make test-flux\`, which does it`)
  return path
}

/** Runs a program to its end; of many runs at once, only as many as there are processors. */
export async function run(tool: Tool, args: readonly string[], options: ToolOptions = {}): Promise<ToolRun> {
  const path = toolPath(tool)
  return inTurn(async () => {
    const child = spawn(path, args, { env, cwd: options.cwd ?? home, timeout: 60_000 })
    const stdout: Buffer[] = []
    const stderr: Buffer[] = []
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk))
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk))
    // A program that does not read its input may be gone before it is written.
    child.stdin.on('error', () => {})
    child.stdin.end(options.input ?? '')
    const [code] = (await once(child, 'close')) as [number | null]
    return { code, stdout: Buffer.concat(stdout).toString(), stderr: Buffer.concat(stderr).toString() }
  })
}

/**
 * What Flux Operator makes of a ResourceSet whose provider has these inputs, in its order. Of objects with one kind,
 * namespace and name it keeps the first and says nothing; `inputs.provider` is the ResourceSet here.
 */
export async function renderResourceSet(resourceSet: string, inputs: readonly unknown[]): Promise<object[]> {
  // With a provider that has no inputs the operator renders nothing; its command line would render once, without any.
  if (inputs.length === 0 && parse(resourceSet).spec?.inputsFrom?.length > 0) return []
  const folder = await mkdtemp(join(home, 'render-'))
  try {
    const file = join(folder, 'inputs.json')
    await writeFile(file, JSON.stringify(inputs))
    const args = ['build', 'resourceset', '--filename', '-', '--inputs-from', file]
    const { code, stdout, stderr } = await run('flux-operator', args, { input: resourceSet })
    // To the operator this is no failure: it deletes what was there.
    if (code === 1 && stderr.trim().endsWith('no objects were generated')) return []
    if (code !== 0) throw new Error(`flux-operator cannot render the ResourceSet: ${stderr}`)
    return parseObjects(stdout)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/**
 * The documents of a YAML stream that hold something, read as Kubernetes does: "yes" is true, 0444 is octal, and times
 * are text. Anything that is wrong with the YAML is thrown, also a key that is there twice.
 */
export function parseObjects(yaml: string): object[] {
  const documents = parseAllDocuments(yaml, {
    version: '1.1',
    customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !isTime(tag)),
  })
  return documents.flatMap((document) => {
    const [problem] = [...document.errors, ...document.warnings]
    if (problem) throw problem
    const value: unknown = document.toJS()
    if (value === null) return []
    if (typeof value !== 'object') throw new Error(`not an object: ${JSON.stringify(value)}`)
    return [value]
  })
}

/** The objects of a stream as Kubernetes itself reads them, by kubectl. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects freely
export async function readByKubernetes(yaml: string): Promise<any[]> {
  if (yaml === '') return []
  const args = ['patch', '--local', '--type', 'merge', '--patch', '{}', '--filename', '-', '--output', 'json']
  const { code, stdout, stderr } = await run('kubectl', args, { input: yaml })
  if (code !== 0) throw new Error(`kubectl cannot read the objects: ${stderr}`)
  return stdout
    .split(/^(?=\{$)/m)
    .filter((text) => text !== '')
    .map((text) => JSON.parse(text))
}

function isTime({ tag, format }: { readonly tag: string; readonly format?: string }): boolean {
  return format === 'TIME' || tag === 'tag:yaml.org,2002:timestamp'
}

let free = availableParallelism()
const waiting: (() => void)[] = []

async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  if (free > 0) free--
  else await new Promise<void>((resolve) => waiting.push(resolve))
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next) next()
    else free++
  }
}
