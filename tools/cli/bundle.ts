// The command line as one file: what it imports, its version and the built-in types included.
import { hash } from 'node:crypto'
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build, type Plugin } from 'esbuild'
import { shippedTypes, shippedVersion } from '../../src/cli/shipped.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The packages that become a part of the file. */
const INCLUDED = ['commander', 'eventsource-parser', 'yaml']

/** Puts what the program would read or compute into it. */
const shipped: Plugin = {
  name: 'shipped',
  setup({ onLoad }) {
    onLoad({ filter: /src\/cli\/shipped\.ts$/ }, async () => {
      const version = JSON.stringify(shippedVersion())
      const types = JSON.stringify(JSON.stringify(await shippedTypes()))
      const contents = `
        export const shippedVersion = () => ${version}
        export const shippedTypes = async () => JSON.parse(${types})`
      return { contents, loader: 'js' }
    })
  },
}

/** Commander runs commands that are programs of their own by this module; there are none, and it takes 2 ms to load. */
const withoutPrograms: Plugin = {
  name: 'without-programs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/commander/') ? { path: 'none', namespace: 'without-programs' } : undefined,
    )
    onLoad({ filter: /^none$/, namespace: 'without-programs' }, () => ({ contents: 'export default {}' }))
  },
}

/** Writes `cli.cjs` into a folder, beside the licenses of what is in it; returns its path. */
export async function bundleCli(folder: string): Promise<string> {
  const outfile = join(folder, 'cli.cjs')
  await build({
    entryPoints: [join(ROOT, 'src/cli.ts')],
    outfile,
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node24',
    // What is run as a script can require what comes with Node, and import nothing.
    supported: { 'dynamic-import': false },
    minifySyntax: true,
    minifyWhitespace: true,
    plugins: [shipped, withoutPrograms],
    logLevel: 'warning',
  })
  const text = readFileSync(outfile, 'utf8').replace(/^#!.*\n/, '')
  // By its digest the program finds the code that an earlier run has kept of it (bin/run-built.cjs).
  writeFileSync(outfile, `// ${hash('sha256', text).slice(0, 16)}\n${text}`)
  for (const name of INCLUDED)
    copyFileSync(join(ROOT, 'node_modules', name, 'LICENSE'), join(folder, `${name}.LICENSE`))
  return outfile
}
