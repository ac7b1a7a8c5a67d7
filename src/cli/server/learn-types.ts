// Which types a server has: from the server, from a cache of its last answer, or the built-in ones.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../config/contexts.ts'
import { Failure } from '../failure.ts'
import type { Env } from '../output/terminal.ts'
import { shippedTypes } from '../shipped.ts'
import type { Api } from './api.ts'
import { isNoun, type Noun, readNouns } from './nouns.ts'

export interface Learned {
  readonly nouns: readonly Noun[]
  readonly from: 'server' | 'cache' | 'built-in'
  /** Why the server could not be asked. */
  readonly problem?: Failure
}

interface Options {
  readonly url: URL
  open(): Api
  readonly env: Env
  /** Asks the server even where the cache is recent. */
  readonly refresh?: boolean
}

const CACHE_MS = 10 * 60 * 1000

export async function learnTypes({ url, open, env, refresh = false }: Options): Promise<Learned> {
  const folder = cacheFolder(env)
  const path = folder && join(folder, `types-${encodeURIComponent(url.href)}.json`)
  const cached = path ? readCache(path) : undefined
  const isRecent = cached && Date.now() - cached.at < CACHE_MS
  if (isRecent && !refresh) return { nouns: cached.nouns, from: 'cache' }
  const { nouns, problem } = await askServer(open())
  if (nouns && path) await writeCache(path, nouns)
  if (nouns) return { nouns, from: 'server' }
  const known = cached?.nouns ?? (await shippedTypes())
  return { nouns: known, from: cached ? 'cache' : 'built-in', ...(problem && { problem }) }
}

/** A failure is returned: the command reports it where it needs the server, and help does not. */
async function askServer(api: Api): Promise<{ nouns?: readonly Noun[] | undefined; problem?: Failure }> {
  try {
    return { nouns: readNouns((await api.get('/openapi.json')).body) }
  } catch (error) {
    if (error instanceof Failure) return { problem: error }
    throw error
  } finally {
    api.close()
  }
}

interface Cached {
  readonly at: number
  readonly nouns: readonly Noun[]
}

function readCache(path: string): Cached | undefined {
  try {
    const cached = JSON.parse(readFileSync(path, 'utf8'))
    const isWhole = Array.isArray(cached.nouns) && cached.nouns.every(isNoun) && typeof cached.at === 'number'
    return isWhole ? cached : undefined
  } catch {
    return undefined
  }
}

/** A cache that cannot be written only costs time. */
async function writeCache(path: string, nouns: readonly Noun[]): Promise<void> {
  // Loaded here: most commands find the types in the cache.
  const { writeOwnFile } = await import('../output/write-files.ts')
  try {
    await writeOwnFile(path, JSON.stringify({ at: Date.now(), nouns }))
  } catch {}
}
