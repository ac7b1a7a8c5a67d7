#!/usr/bin/env -S node --min-semi-space-size=16
// The command line. A checkout runs its sources, the package what they were built to.
// CommonJS, kept code and room for young objects: each of them shortens the start.
const [major, minor] = process.versions.node.split('.').map(Number)
if (major < 24 || (major === 24 && minor < 12)) {
  process.stderr.write(
    `Error: this needs Node 24.12 or newer, and runs on ${process.version}: ${process.execPath}\n`,
  )
  process.exit(2)
}
const { existsSync, readFileSync } = require('node:fs')
const { join } = require('node:path')
const { codeFolder, runBuilt } = require('./run-built.cjs')

const source = join(__dirname, '../src/cli.ts')
const built = join(__dirname, '../dist/cli.cjs')
if (existsSync(source)) {
  if (codeFolder) require('node:module').enableCompileCache(codeFolder)
  require(source)
} else runBuilt(readFileSync(built, 'utf8'), built)
