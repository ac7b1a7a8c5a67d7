// The built files of the web console, read once: hashed assets with their compressed forms, and the page that loads them.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { extname, join } from 'node:path'

export const ENCODINGS = ['br', 'gzip'] as const
type Encoding = (typeof ENCODINGS)[number]

interface Asset {
  readonly type: string
  readonly plain: Buffer
  /** Made by the build, where it is smaller. */
  readonly compressed: Readonly<Partial<Record<Encoding, Buffer>>>
}

export interface ConsoleFiles {
  /** Undefined when the console has not been built. */
  readonly page: string | undefined
  /** By file name below `/console/assets/`. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** Stands in the page where each response puts a nonce of its own; the build writes it. */
export const NONCE_PLACEHOLDER = '__CSP_NONCE__'

const TYPES: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const SUFFIXES: Readonly<Record<Encoding, string>> = { br: '.br', gzip: '.gz' }

export function loadConsole(folder: string): ConsoleFiles {
  const page = join(folder, 'index.html')
  if (!existsSync(page)) return { page: undefined, assets: new Map() }
  const assets = join(folder, 'assets')
  const names = readdirSync(assets).filter((name) => extname(name) in TYPES)
  return {
    page: readFileSync(page, 'utf8'),
    assets: new Map(names.map((name) => [name, loadAsset(assets, name)])),
  }
}

function loadAsset(folder: string, name: string): Asset {
  const path = join(folder, name)
  const found = ENCODINGS.filter((encoding) => existsSync(path + SUFFIXES[encoding]))
  return {
    type: TYPES[extname(name)] as string,
    plain: readFileSync(path),
    compressed: Object.fromEntries(
      found.map((encoding) => [encoding, readFileSync(path + SUFFIXES[encoding])]),
    ),
  }
}
