// Files that a log travels in: written whole or not at all, and read twice without a change in between.
import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, readSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import type { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import { UsageProblem } from '../base/usage-problem.ts'
import { replaceFile } from '../runtime/replace-file.ts'
import { StoreError } from '../store/store.ts'
import { FORMAT, StreamError } from './transfer-items.ts'
import { linesOf } from './transfer-lines.ts'

const STDOUT = '-'
const BLOCK = 1024 * 1024
/** The first bytes of every uncompressed file of this format. */
const FIRST = `{"format":"${FORMAT}"`

/** Writes lines to a file, compressed when its name ends in .gz, or to a stream; returns the number of bytes. */
export async function writeLines(
  path: string,
  lines: AsyncIterable<string>,
  stdout: Writable,
): Promise<number> {
  if (path === STDOUT) return writeOut(lines, stdout)
  checkTarget(path)
  let size = 0
  await namingFile(path, 'written', () =>
    replaceFile(path, async (file) => {
      size = await send(path, lines, path.endsWith('.gz'), (chunk) => file.appendFile(chunk))
    }),
  )
  return size
}

async function writeOut(lines: AsyncIterable<string>, stdout: Writable): Promise<number> {
  const ignore = (): void => {}
  // The write fails with the same error.
  stdout.on('error', ignore)
  try {
    return await send(STDOUT, lines, false, (chunk) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>()
      stdout.write(chunk, (error) => (error ? reject(error) : resolve()))
      return promise
    })
  } finally {
    stdout.off('error', ignore)
  }
}

async function send(
  path: string,
  lines: AsyncIterable<string>,
  isPacked: boolean,
  write: (chunk: Buffer) => Promise<void>,
): Promise<number> {
  let size = 0
  const writeAll = async (chunks: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of chunks) {
      size += chunk.length
      await write(chunk)
    }
  }
  const text = withBreaks(lines)
  await namingFile(path, 'written', () =>
    isPacked ? pipeline(text, createGzip(), writeAll) : pipeline(text, writeAll),
  )
  return size
}

/** Joins lines into buffers, so that there are few large writes instead of many small ones. */
async function* withBreaks(lines: AsyncIterable<string>): AsyncGenerator<Buffer> {
  let text = ''
  for await (const line of lines) {
    text += `${line}\n`
    if (text.length < BLOCK / 16) continue
    yield Buffer.from(text)
    text = ''
  }
  if (text !== '') yield Buffer.from(text)
}

/** Only files of this format are overwritten: a mistyped path must not cost a database, its write-ahead log, or a key. */
function checkTarget(path: string): void {
  const stats = statSync(path, { throwIfNoEntry: false })
  if (stats && !stats.isFile())
    throw new UsageProblem(`${path}: is not a file: name one, or - for the standard output`)
  if (!stats) return
  const start = Buffer.alloc(FIRST.length)
  const file = openSync(path, 'r')
  const size = readSync(file, start)
  closeSync(file)
  if (size === 0 || isPacked(start) || start.toString('latin1') === FIRST) return
  throw new UsageProblem(`${path}: is there already, and is no backup and no bundle: name another file`)
}

function isPacked(start: Buffer): boolean {
  return start.readUInt16BE() === 0x1f8b
}

export interface LinesFile {
  /** All lines from the first one; may be called again. */
  lines(): AsyncGenerator<string>
  close(): Promise<void>
}

/** Opens a file to read twice, first to check it. A block that differs in the second read throws StreamError. */
export async function openLines(path: string): Promise<LinesFile> {
  if (path === STDOUT)
    throw new UsageProblem('it is read twice, first to check it: write it to a file and name that')
  if (!existsSync(path)) throw new UsageProblem(`${path}: there is no such file`)
  const handle = await namingFile(path, 'read', () => open(path, 'r'))
  const digests: string[] = []
  async function* blocks(): AsyncGenerator<Buffer> {
    for (let number = 0; ; number++) {
      const { buffer, bytesRead } = await namingFile(path, 'read', () => readBlock(handle, number))
      const block = buffer.subarray(0, bytesRead)
      const digest = createHash('sha256').update(block).digest('hex')
      digests[number] ??= digest
      if (digests[number] !== digest)
        throw new StreamError('was changed while it was read', { isDamaged: true })
      if (bytesRead > 0) yield block
      if (bytesRead < BLOCK) return
    }
  }
  async function* lines(): AsyncGenerator<string> {
    const magic = await namingFile(path, 'read', () => handle.read(Buffer.alloc(2), 0, 2, 0))
    yield* linesOf(magic.bytesRead === 2 && isPacked(magic.buffer) ? unpacked(blocks()) : blocks())
  }
  return { lines, close: () => handle.close() }
}

async function readBlock(
  handle: FileHandle,
  number: number,
): Promise<{ readonly buffer: Buffer; readonly bytesRead: number }> {
  const buffer = Buffer.alloc(BLOCK)
  let bytesRead = 0
  for (let got = -1; got !== 0 && bytesRead < BLOCK; bytesRead += got) {
    const { bytesRead: more } = await handle.read(
      buffer,
      bytesRead,
      BLOCK - bytesRead,
      number * BLOCK + bytesRead,
    )
    got = more
  }
  return { buffer, bytesRead }
}

async function* unpacked(blocks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const gunzip = createGunzip()
  const fed = pipeline(blocks, gunzip)
  // The reader gets the same error.
  fed.catch(() => {})
  try {
    yield* gunzip as AsyncIterable<Buffer>
    await fed
  } catch (error) {
    if (error instanceof StoreError) throw error
    throw new StreamError('cannot be unpacked: it is damaged or cut off', { isDamaged: true })
  }
}

/** Turns an error of the file system into a StoreError that names the file. */
async function namingFile<T>(path: string, doing: 'read' | 'written', run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof StoreError) throw error
    const name = path === STDOUT ? 'the standard output' : path
    throw new StoreError(`${name}: cannot be ${doing}: ${(error as Error).message}`, { cause: error })
  }
}
