// A lock beside a file, for one process at a time; the lock of a process that has ended is removed.
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { usage } from '../failure.ts'

/** A lock that is older is abandoned. */
const MAX_AGE_MS = 30_000
const TIMEOUT_MS = 2 * MAX_AGE_MS
const PAUSE_MS = 25

export async function withLock<T>(path: string, run: () => T | Promise<T>): Promise<T> {
  const lock = `${path}.lock`
  const owner = `${hostname()} ${process.pid}`
  const deadline = Date.now() + TIMEOUT_MS
  while (!take(path, lock, owner)) {
    if (isAbandoned(lock)) rmSync(lock, { force: true })
    else if (Date.now() > deadline) throw usage(`${path} is in use: if by nobody, delete ${lock}`)
    else await sleep(PAUSE_MS)
  }
  try {
    return await run()
  } finally {
    // A process that was suspended for too long has lost its lock to another.
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

/** Whether the process of a lock has ended; one on another machine is taken to have ended when the lock is too old. */
function isAbandoned(lock: string): boolean {
  const [host, pid] = ownerOf(lock)?.split(' ') ?? []
  if (host === hostname() && pid && !isAlive(Number(pid))) return true
  const { mtimeMs } = statSync(lock, { throwIfNoEntry: false }) ?? { mtimeMs: Date.now() }
  return Date.now() - mtimeMs > MAX_AGE_MS
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
