import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { test } from 'node:test'

const SRC = join(import.meta.dirname, '../src')

/** Where the files of each folder may import from, beside their own folder: a whole folder or one file of it. */
const ARROWS: Record<string, readonly string[]> = {
  base: [],
  runtime: ['base'],
  domain: ['base'],
  api: ['base', 'domain'],
  registry: ['base', 'domain', 'api'],
  bootstrap: ['base', 'domain', 'registry'],
  store: ['base', 'runtime', 'domain'],
  transfer: ['base', 'runtime', 'domain', 'store'],
  engine: [
    'base',
    'runtime',
    'domain',
    'store/hash-chain.ts',
    'store/idempotency.ts',
    'store/leases.ts',
    'store/notes.ts',
    'store/store.ts',
    'transfer/export-log.ts',
    'transfer/replication-status.ts',
    'transfer/verify-log.ts',
  ],
  http: ['base', 'runtime', 'domain', 'api', 'registry', 'bootstrap', 'engine'],
  config: ['base'],
  admin: ['base', 'runtime', 'domain', 'config', 'registry', 'bootstrap', 'store', 'transfer', 'engine'],
  cli: ['base', 'runtime', 'domain', 'api', 'registry'],
  'cli.ts': ['cli'],
  'main.ts': ['base', 'config', 'serve.ts', 'admin', 'registry', 'bootstrap', 'store/store.ts'],
  startup: ['base', 'runtime', 'domain', 'config', 'registry', 'store', 'transfer', 'engine', 'http'],
  'serve.ts': ['base', 'runtime', 'config', 'registry', 'bootstrap', 'engine', 'http', 'startup'],
}

/** The console: beside these of its own folders, it may use what runs in a browser of `src`. */
const WEB = join(import.meta.dirname, '../web')
const WEB_ARROWS: Record<string, readonly string[]> = {
  session: ['api'],
  api: ['session'],
  parts: ['api', 'session'],
  shell: ['api', 'session', 'parts', 'pages.ts', 'pages/login'],
  pages: ['api', 'session', 'parts'],
  'pages.ts': ['parts'],
  'router.tsx': ['api', 'shell', 'pages'],
  'main.tsx': ['api', 'router.tsx', 'theme.ts'],
  'theme.ts': [],
}
const FOR_BROWSERS = ['base', 'domain', 'api']

const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(SRC, join(entry.parentPath, entry.name)))
const isTest = (file: string) => /\.test\.ts$|-contract\.ts$/.test(file)
const sources = files.filter((file) => file.endsWith('.ts') && !isTest(file))

function textOf(file: string): string {
  return readFileSync(join(SRC, file), 'utf8')
}

/** Everything a file imports, also only for its types. */
function importsOf(file: string): string[] {
  const statements = /(?:\bfrom|\bimport)\s*\(?\s*['"]([^'"]+)['"]/g
  return [...textOf(file).matchAll(statements)].map(([, specifier]) => specifier as string)
}

/** The files of ours that a file imports, as paths below src. */
function ownImportsOf(file: string): string[] {
  const specifiers = importsOf(file).filter((specifier) => specifier.startsWith('.'))
  return specifiers.map((specifier) => join(dirname(file), specifier))
}

function areaOf(file: string): string {
  return file.split('/')[0] as string
}

test('the way imports are found knows every form of them', () => {
  assert.deepEqual(ownImportsOf('http/load/fair-queue.ts'), ['runtime/round-robin.ts'])
  assert.ok(ownImportsOf('main.ts').includes('serve.ts'))
  for (const file of sources) {
    const lines = textOf(file).match(/^import\b|^export .* from '/gm) ?? []
    assert.ok(importsOf(file).length >= lines.length, file)
  }
})

test('every import goes along an arrow of the design', () => {
  const wrong = sources.flatMap((file) => {
    const area = areaOf(file)
    const allowed = ARROWS[area]
    if (!allowed) return [`${file} is in no known place`]
    return ownImportsOf(file)
      .filter((target) => ![area, ...allowed].some((may) => may === areaOf(target) || may === target))
      .map((target) => `${file} imports ${target}`)
  })
  assert.deepEqual(wrong, [])
})

test('no files import each other in a circle, not even for their types', () => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (file: string, path: readonly string[]): void => {
    const start = path.indexOf(file)
    if (start >= 0) circles.push([...path.slice(start), file].join(' -> '))
    if (start >= 0 || done.has(file)) return
    for (const target of ownImportsOf(file)) visit(target, [...path, file])
    done.add(file)
  }
  for (const file of sources) visit(file, [])
  assert.deepEqual(circles, [])
})

const MAX_FUNCTION_LINES = 80
/** A line that ends a function's head; what begins like one but is none is told apart by its first word. */
const HEAD = /(?:\)|=>|\): .+) \{$/
const STATEMENT = /^(?:\} )?(?:else )?(?:if|for|while|switch|catch)\b|^\} catch/

/** The lines of every function in a formatted source, by where it begins. */
function functionsIn(file: string): { readonly place: string; readonly lines: number }[] {
  const lines = textOf(file).split('\n')
  return lines.flatMap((line, i) => {
    if (!HEAD.test(line) || STATEMENT.test(line.trim())) return []
    const indent = (/^ */.exec(line) as RegExpExecArray)[0]
    const end = lines.findIndex((other, j) => j > i && other.startsWith(`${indent}}`))
    const above = lines
      .slice(0, i)
      .findLastIndex((other) => /^ *\S/.test(other) && !other.startsWith(`${indent} `))
    const start = line.trim().startsWith(')') ? above : i
    return [{ place: `${file}:${start + 1}`, lines: end - start + 1 }]
  })
}

test('no function is longer than 80 lines', () => {
  const all = sources.flatMap(functionsIn)
  assert.ok(all.length > 1000, `only ${all.length} were found`)
  assert.deepEqual(
    all.filter(({ lines }) => lines > MAX_FUNCTION_LINES),
    [],
  )
})

test('the map of newcomers names files that are there', () => {
  const map = readFileSync(join(SRC, '../AGENTS.md'), 'utf8')
  const named = [...map.matchAll(/`([a-z-]+\.ts)`/g)].map(([, name]) => name as string)
  assert.ok(named.length > 30, `only ${named.length} were found`)
  const names = new Set([...files, ...webFiles].map((file) => basename(file)))
  assert.deepEqual(
    named.filter((name) => !names.has(name)),
    [],
  )
})

/** The files that each walk of the map names, in its order. */
function walks(): Map<string, readonly string[]> {
  const map = readFileSync(join(SRC, '../AGENTS.md'), 'utf8')
  const [, ...each] = map.slice(map.indexOf('\nWalks'), map.indexOf("\nOthers' commits")).split('\n- ')
  return new Map(
    each.map((walk) => [
      walk.split(':')[0] as string,
      [...walk.matchAll(/`([a-z-]+\.ts)`/g)].map(([, name]) => name as string),
    ]),
  )
}

test('each step of a walk on the map is at most two imports from one before it', () => {
  const imports = sources.flatMap((file) => ownImportsOf(file).map((target) => [file, target] as const))
  const near = (from: ReadonlySet<string>) =>
    new Set([...from, ...imports.flatMap(([a, b]) => (from.has(a) ? [b] : from.has(b) ? [a] : []))])
  const all = walks()
  assert.ok(all.size >= 6, `only ${[...all.keys()]} were found`)
  for (const [walk, names] of all) {
    assert.ok(names.length >= 4, walk)
    const seen = new Set<string>()
    for (const name of names) {
      const file = sources.find((source) => basename(source) === name) as string
      assert.ok(seen.size === 0 || near(near(seen)).has(file), `${walk}: nothing before leads to ${name}`)
      seen.add(file)
    }
  }
})

test('no import leaves src', () => {
  const leaving = sources.flatMap((file) => ownImportsOf(file).filter((target) => target.startsWith('..')))
  assert.deepEqual(leaving, [])
})

test('every import names a file that is there', () => {
  const missing = sources.flatMap((file) => ownImportsOf(file).filter((target) => !files.includes(target)))
  assert.deepEqual(missing, [])
})

test('only the process reads the configuration, and nobody starts the process', () => {
  const users = (target: string) => sources.filter((file) => ownImportsOf(file).includes(target))
  const readers = users('config/config.ts').filter((file) => areaOf(file) !== 'startup')
  assert.deepEqual(readers.sort(), ['main.ts', 'serve.ts'])
  assert.deepEqual(users('config/database-url.ts').sort(), ['admin/store-commands.ts', 'config/config.ts'])
  assert.deepEqual(users('main.ts'), [])
  assert.deepEqual(users('serve.ts'), ['main.ts'])
})

test('CLI commands are imported by the two tables of commands only', () => {
  const tables = ['cli/fleet-commands.ts', 'cli/noun-commands.ts']
  const commands = sources.filter((file) => file.startsWith('cli/commands/'))
  assert.ok(commands.length > 0)
  const wrong = sources
    .filter((file) => !tables.includes(file))
    .flatMap((file) =>
      ownImportsOf(file)
        .filter((target) => commands.includes(target))
        .map((target) => `${file} imports ${target}`),
    )
  assert.deepEqual(wrong, [])
  const listed = tables.flatMap(ownImportsOf)
  assert.deepEqual(
    commands.filter((file) => !listed.includes(file)),
    [],
  )
})

test('routes are leaves: the list of all routes alone imports them', () => {
  const routes = sources.filter((file) => file.startsWith('http/routes/'))
  assert.ok(routes.length > 0)
  for (const route of routes) {
    const users = sources.filter((file) => ownImportsOf(file).includes(route))
    assert.deepEqual(users, ['http/all-routes.ts'], route)
  }
})

test('the environment is read by the process alone', () => {
  const readers = sources.filter((file) => /\bprocess\.env\b/.test(textOf(file)))
  assert.deepEqual(readers, ['main.ts'])
})

test('the domain runs in a browser: no modules and no globals of Node', () => {
  const domain = sources.filter((file) => ['base', 'domain', 'api'].includes(areaOf(file)))
  assert.ok(domain.length > 0)
  for (const file of domain) {
    const foreign = importsOf(file).filter((specifier) => specifier.startsWith('node:'))
    assert.deepEqual(foreign, [], file)
    const code = textOf(file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    assert.doesNotMatch(code, /\b(?:process|Buffer|require|setImmediate|__dirname)\b\s*[.(]/, file)
  }
})

test('the domain names no type of resource', () => {
  for (const file of sources.filter((source) => areaOf(source) === 'domain')) {
    const code = textOf(file).replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '')
    // An operation of a batch has a field of that name.
    if (file === 'domain/commands/parse-batch.ts') continue
    assert.doesNotMatch(code, /platform_components|['"`](?:clusters|namespaces|rolebindings)['"`]/, file)
  }
})

test('modules of Node are imported by their full names', () => {
  const short =
    /^(?:assert|buffer|child_process|crypto|events|fs|http|net|os|path|stream|url|util|worker_threads|zlib)$/
  const wrong = sources.flatMap((file) => importsOf(file).filter((specifier) => short.test(specifier)))
  assert.deepEqual(wrong, [])
})

test('file names are in kebab-case and unique', () => {
  const names = files.map((file) => basename(file))
  const odd = names.filter((name) => !/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.test)?\.[a-z]+$/.test(name))
  assert.deepEqual(odd, [])
  const twins = names.filter((name, i) => names.indexOf(name) < i)
  assert.deepEqual(twins, [])
})

test('no file is named after nothing: no index, no utils, no helpers', () => {
  const vague = /^(?:index|utils?|helpers?|common|misc)\.|-(?:service|manager|utils?|helpers?)\./
  assert.deepEqual(
    files.filter((file) => vague.test(basename(file))),
    [],
  )
})

test('exports have names', () => {
  const code = files.filter((file) => file.endsWith('.ts'))
  const nameless = code.filter((file) => /^export default\b|\bas default\b/m.test(textOf(file)))
  assert.deepEqual(nameless, [])
})

test('every source says in its first line what belongs there', () => {
  const silent = sources.filter((file) => !/^(?:#!.*\n)?\/\/ \S/.test(textOf(file)))
  assert.deepEqual(silent, [])
})

const webFiles = readdirSync(WEB, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => relative(WEB, join(entry.parentPath, entry.name)))
const webSources = webFiles.filter((file) => /\.tsx?$/.test(file) && file !== 'vite.config.ts')

/** What a file of the console imports of ours, as paths below `web`, or below `../src`. */
function webImportsOf(file: string): string[] {
  const code = readFileSync(join(WEB, file), 'utf8')
  const specifiers = [...code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*['"](\.[^'"]+)['"]/g)]
  return specifiers
    .map(([, specifier]) => join(dirname(file), specifier as string))
    .filter((target) => /\.tsx?$/.test(target))
}

test('the console imports what runs in a browser, and along arrows of its own', () => {
  assert.ok(webSources.length > 40)
  const wrong = webSources.flatMap((file) => {
    const area = areaOf(file)
    const allowed = WEB_ARROWS[area]
    if (!allowed) return [`${file} is in no known place`]
    return webImportsOf(file)
      .filter((target) =>
        target.startsWith('../src/')
          ? !FOR_BROWSERS.includes(areaOf(target.slice('../src/'.length)))
          : ![area, ...allowed].some((may) => target === may || target.startsWith(`${may}/`)),
      )
      .map((target) => `${file} imports ${target}`)
  })
  assert.deepEqual(wrong, [])
})

test('pages of the console know nothing of each other, and their files say what they are for', () => {
  const pageOf = (file: string) => file.split('/').slice(0, 2).join('/')
  const between = webSources
    .filter((file) => file.startsWith('pages/'))
    .flatMap((file) =>
      webImportsOf(file)
        .filter((target) => target.startsWith('pages/') && pageOf(target) !== pageOf(file))
        .map((target) => `${file} imports ${target}`),
    )
  assert.deepEqual(between, [])
  const silent = webSources.filter((file) => !readFileSync(join(WEB, file), 'utf8').startsWith('// '))
  assert.deepEqual(silent, [])
  const names = webFiles.map((file) => basename(file))
  assert.deepEqual(
    names.filter((name, i) => names.indexOf(name) < i),
    [],
  )
  const long = webSources.filter((file) => readFileSync(join(WEB, file), 'utf8').split('\n').length > 300)
  assert.deepEqual(long, [])
})

test('nothing in the console is HTML that was put together', () => {
  const html = webSources.filter((file) =>
    /dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(/.test(
      readFileSync(join(WEB, file), 'utf8'),
    ),
  )
  assert.deepEqual(html, [])
})
