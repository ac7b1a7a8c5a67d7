// The service in one file, for tests that start it hundreds of times: of each start, a quarter is reading its modules.
import { mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'

const ROOT = join(import.meta.dirname, '..')
const FOLDER = join(ROOT, 'node_modules/.cache/service')
/** What it reads beside itself, and where that lies. */
const BESIDE: Readonly<Record<string, string>> = {
  'package.json': 'package.json',
  resources: 'resources',
  deploy: 'deploy',
  migrations: 'src/store/migrations',
  'dist/console': 'dist/console',
}

/** Made anew from the sources; returns the path of what `src/main.ts` has become. */
export async function bundleService(): Promise<string> {
  rmSync(FOLDER, { recursive: true, force: true })
  const dist = join(FOLDER, 'dist')
  mkdirSync(dist, { recursive: true })
  for (const [name, path] of Object.entries(BESIDE)) symlinkSync(join(ROOT, path), join(FOLDER, name))
  await build({
    absWorkingDir: ROOT,
    entryPoints: ['src/main.ts', 'src/store/sqlite/sqlite-writer.ts'],
    outdir: dist,
    entryNames: '[name]',
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    // Packages that are CommonJS call it.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    // Has files of its own, and an optional package that is not there.
    external: ['@fastify/swagger-ui', 'pg-native'],
    logLevel: 'error',
  })
  return join(dist, 'main.js')
}
