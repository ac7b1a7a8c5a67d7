// `npm run build:exe`: the command line as one file that needs no Node, for the machine that it is built on.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { build } from 'esbuild'
import { bundleCli } from './bundle.ts'

const target = resolve(process.argv[2] ?? join(import.meta.dirname, '../../dist/flux-resourceset-cli'))

const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-exe-'))
try {
  mkdirSync(join(target, '..'), { recursive: true })
  const main = join(folder, 'main.cjs')
  await build({
    entryPoints: [join(import.meta.dirname, 'executable.cjs')],
    outfile: main,
    bundle: true,
    platform: 'node',
    logLevel: 'warning',
  })
  const settings = join(folder, 'sea.json')
  const description = {
    main,
    output: target,
    executable: process.execPath,
    assets: { 'cli.cjs': await bundleCli(folder) },
    disableExperimentalSEAWarning: true,
    execArgv: ['--min-semi-space-size=16'],
  }
  writeFileSync(settings, JSON.stringify(description))
  execFileSync(process.execPath, ['--build-sea', settings], { stdio: ['ignore', 'ignore', 'inherit'] })
  console.log(target)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
