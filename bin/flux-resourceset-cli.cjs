#!/usr/bin/env -S node --min-semi-space-size=16
// The command line. A checkout runs its sources, the package what they were built to.
// CommonJS, a compile cache and room for young objects: each of them shortens the start.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `Error: this needs Node 24.12 or newer, and runs on ${process.version}: ${process.execPath}\n`,
  )
  process.exit(2)
}
const { existsSync } = require('node:fs')
const { enableCompileCache } = require('node:module')
const { join } = require('node:path')

const { HOME = '', XDG_CACHE_HOME = '' } = process.env
const cache = XDG_CACHE_HOME.startsWith('/') ? XDG_CACHE_HOME : HOME && join(HOME, '.cache')
if (cache) enableCompileCache(join(cache, 'flux-resourceset', 'compiled'))

const source = join(__dirname, '../src/cli.ts')
require(existsSync(source) ? source : '../dist/cli.cjs')
