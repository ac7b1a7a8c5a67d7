// Builds the web console into a folder, unless what lies there was built from the same sources.
import { createHash } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { brotliCompressSync, constants, gzipSync } from 'node:zlib'

const ROOT = join(import.meta.dirname, '../..')
/** Everything that a built file may come from. */
const SOURCES = ['web', 'src/base', 'src/domain', 'src/api', 'package-lock.json', 'tools/console']
const BUILT_FROM = 'built-from'
/** Smaller files gain nothing. */
const LEAST_COMPRESSED = 512
const MAX_TRIES = 10

function digestOfSources(): string {
  const digest = createHash('sha256')
  for (const path of SOURCES.flatMap(filesBelow))
    digest.update(`${path}\n`).update(readFileSync(join(ROOT, path)))
  return digest.digest('hex')
}

function filesBelow(path: string): string[] {
  if (path.endsWith('.json')) return [path]
  return readdirSync(join(ROOT, path), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .sort()
}

/** The service sends these as they are, and compresses nothing itself. */
function compress(folder: string): void {
  for (const name of readdirSync(folder).filter((each) => /\.(?:js|css|svg)$/.test(each))) {
    const path = join(folder, name)
    const plain = readFileSync(path)
    if (plain.length < LEAST_COMPRESSED) continue
    writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }))
    writeFileSync(
      `${path}.br`,
      brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
    )
  }
}

/** Says whether there was anything to build. The folder is replaced at once: whoever reads it never sees half of it. */
export async function buildConsole(folder: string): Promise<boolean> {
  const digest = digestOfSources()
  if (isBuilt(folder, digest)) return false
  mkdirSync(dirname(resolve(folder)), { recursive: true })
  const built = mkdtempSync(`${resolve(folder)}-`)
  // Whoever runs the service may be another user than who built it.
  chmodSync(built, 0o755)
  // Most tests find it built, and need no bundler.
  const { build } = await import('vite')
  await build({
    configFile: join(ROOT, 'web/vite.config.ts'),
    build: { outDir: built },
    logLevel: 'warn',
  })
  compress(join(built, 'assets'))
  writeFileSync(join(built, BUILT_FROM), digest)
  putInPlace(built, folder, digest)
  return true
}

/** Others may build the same at the same time: what the first of them has put there stays, for somebody may read it already. */
function putInPlace(built: string, folder: string, digest: string): void {
  for (let tries = 0; !isBuilt(folder, digest); tries++) {
    rmSync(folder, { recursive: true, force: true })
    try {
      renameSync(built, folder)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY' || tries === MAX_TRIES) throw error
    }
  }
  rmSync(built, { recursive: true })
}

function isBuilt(folder: string, digest: string): boolean {
  const mark = join(folder, BUILT_FROM)
  return existsSync(mark) && readFileSync(mark, 'utf8') === digest
}

if (import.meta.main) {
  const folder = process.argv[2] ?? join(ROOT, 'dist/console')
  const begun = performance.now()
  if (await buildConsole(folder))
    console.log(`built the console in ${((performance.now() - begun) / 1000).toFixed(1)} s`)
}
