// One process at a time: a lock beside a file, which a process that is gone does not keep.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { usage } from '../failure.ts'

/** Nobody holds a lock for longer. */
const LONGEST_MS = 30_000
const PATIENCE_MS = 2 * LONGEST_MS
const PAUSE_MS = 25

export async function withLock<T>(path: string, run: () => T | Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const owner = `${hostname()} ${process.pid}`
  const patienceEnds = Date.now() + PATIENCE_MS
  while (!take(path, lock, owner)) {
    if (isAbandoned(lock)) rmSync(lock, { force: true })
    else if (Date.now() > patienceEnds) throw usage(`${path} is in use: if by nobody, delete ${lock}`)
    else await sleep(PAUSE_MS)
  }
  try {
    return await run()
  } finally {
    // Whoever was stopped for too long has lost it.
    if (ownerOf(lock) === owner) rmSync(lock, { force: true })
  }
}

function take(path: string, lock: string, owner: string): boolean {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    writeFileSync(lock, owner, { flag: 'wx', mode: 0o600 })
    return true
  } catch (error) {
    const { code, syscall, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST' && syscall === 'open') return false
    throw usage(`${path} cannot be written: ${message}`)
  }
}

function ownerOf(lock: string): string | undefined {
  try {
    return readFileSync(lock, 'utf8')
  } catch {
    return undefined
  }
}

/** Its process is gone, or it is too old, wherever its process was. */
function isAbandoned(lock: string): boolean {
  const [host, pid] = ownerOf(lock)?.split(' ') ?? []
  if (host === hostname() && pid && !isAlive(Number(pid))) return true
  const { mtimeMs } = statSync(lock, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
  return Date.now() - mtimeMs > LONGEST_MS
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
