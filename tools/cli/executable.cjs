// What a single executable runs: the built command line, which it holds.
const { getAsset } = require('node:sea')
const { runBuilt } = require('../../bin/run-built.cjs')

runBuilt(getAsset('cli.cjs', 'utf8'), process.execPath)
