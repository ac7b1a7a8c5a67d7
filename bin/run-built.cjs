// Runs the built command line with the code that V8 made of it in an earlier run. Node's own compile cache keeps only what is
// compiled before a program begins, which is little of one whose commands are loaded as they are needed: 7 ms of a start.
const { mkdirSync, readFileSync, renameSync, writeFileSync } = require('node:fs')
const { join } = require('node:path')
const { Script } = require('node:vm')

const { HOME = '', XDG_CACHE_HOME = '' } = process.env
const home = XDG_CACHE_HOME.startsWith('/') ? XDG_CACHE_HOME : HOME && join(HOME, '.cache')

/** Where compiled code is kept; undefined where there is no place for it. */
const codeFolder = home ? join(home, 'flux-resourceset/compiled') : undefined

/** These run too little of the program for what they compile to be worth keeping. */
const SMALL = ['--version', '-V', '__complete']

function runBuilt(text, file) {
  // The build begins the file with its digest: V8 only compares how long the text is.
  const [, digest] = /^\/\/ ([0-9a-f]{16})\n/.exec(text) ?? []
  const flags = process.execArgv.join('').replaceAll(/[^\w=.-]/g, '')
  const name = `cli-${digest}-${process.version}-${process.arch}${flags}`
  const path = codeFolder && digest && join(codeFolder, name)
  const script = new Script(`(function(require,module,exports,__filename,__dirname){${text}\n})`, {
    filename: file,
    cachedData: path ? readIfThere(path) : undefined,
  })
  script.runInThisContext()(require, module, exports, file, join(file, '..'))
  const isKept = script.cachedDataRejected === false
  if (path && !isKept && !SMALL.includes(process.argv[2])) process.once('exit', () => keep(path, script))
}

function readIfThere(path) {
  try {
    return readFileSync(path)
  } catch {
    return undefined
  }
}

/** Whole or not at all: V8 trusts what it is given. A cache that cannot be written only costs time. */
function keep(path, script) {
  try {
    const temporary = `${path}.${process.pid}.tmp`
    mkdirSync(join(path, '..'), { recursive: true, mode: 0o700 })
    writeFileSync(temporary, script.createCachedData(), { flag: 'wx', mode: 0o600, flush: true })
    renameSync(temporary, path)
  } catch {}
}

module.exports = { codeFolder, runBuilt }
