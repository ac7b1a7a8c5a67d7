// The upstream of a mirror: another service's log and its stream of changes, over HTTPS.
import { isObject } from '../base/json.ts'
import { readLines } from '../runtime/read-lines.ts'
import { StoreError } from '../store/store.ts'
import { StreamError } from './transfer-items.ts'
import { linesOf } from './transfer-lines.ts'

interface UpstreamOptions {
  readonly url: string
  readonly token: () => string
  /** Aborts every request. */
  readonly signal: AbortSignal
}

interface UpstreamLog {
  readonly lines: AsyncIterable<string>
  /** How long ago the upstream itself was known to be up to date. */
  readonly stalenessMs: number
}

/** A connection without a byte for this long is dead: heartbeats come more often. */
const SILENCE_MS = 45_000

/** Every method throws StoreError when the upstream cannot be reached or refuses. */
export class Upstream {
  readonly #options: UpstreamOptions

  constructor(options: UpstreamOptions) {
    this.#options = options
  }

  /** The log after a revision, of the selected clusters or of all. */
  async log(since: number, selector: string | undefined): Promise<UpstreamLog> {
    const query = new URLSearchParams({ since: String(since), ...(selector && { selector }) })
    const response = await this.#get(`/log?${query}`)
    // A proxy's own page is not a response of the upstream.
    if (!response.headers.get('content-type')?.startsWith('application/x-ndjson')) {
      await response.body?.cancel()
      throw new StoreError('what answers is not flux-resourceset: is a proxy in the way?', {
        isTransient: true,
      })
    }
    const stalenessMs = 1000 * (Number(response.headers.get('x-state-age')) || 0)
    return { lines: linesOf(bytesOf(response)), stalenessMs }
  }

  /** Opens the stream of changes: the revisions that the upstream has, as it announces them. */
  async watch(): Promise<AsyncIterable<number>> {
    return revisionsIn(await this.#get('/watch'))
  }

  async #get(target: string): Promise<Response> {
    const { url, token, signal } = this.#options
    const headers = { authorization: `Bearer ${token()}` }
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), SILENCE_MS)
    try {
      const either = AbortSignal.any([signal, silence.signal])
      const response = await fetch(`${url}${target}`, { headers, redirect: 'error', signal: either })
      if (response.ok) return response
      throw await refusal(response)
    } catch (error) {
      throw error instanceof StoreError ? error : unreachable(error as Error)
    } finally {
      clearTimeout(timer)
    }
  }
}

async function* revisionsIn(response: Response): AsyncGenerator<number> {
  for await (const line of readLines(bytesOf(response))) {
    const told = /^(?:: revision|id:) (\d+)\r?$/.exec(Buffer.from(line).toString('latin1'))
    if (told) yield Number(told[1])
  }
}

async function* bytesOf({ body }: Response): AsyncGenerator<Uint8Array> {
  const reader = (body as ReadableStream<Uint8Array>).getReader()
  try {
    for (;;) {
      const timer = setTimeout(() => void reader.cancel(), SILENCE_MS)
      const { done, value } = await reader.read().finally(() => clearTimeout(timer))
      if (done) return
      yield value
    }
  } catch (error) {
    throw unreachable(error as Error)
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function unreachable(error: Error): StoreError {
  const { cause, message } = error
  const why = cause instanceof Error ? cause.message : message
  return new StoreError(`it cannot be reached: ${why}`, { cause: error, isTransient: true })
}

async function refusal(response: Response): Promise<StoreError> {
  const { status } = response
  const body: unknown = await response.json().catch(() => undefined)
  const said = isObject(body) && typeof body.message === 'string' ? body.message : `it answers ${status}`
  if (status === 401) return new StoreError('it refuses UPSTREAM_TOKEN: is it still valid there?')
  if (status === 409)
    return new StreamError(`is an older one than what was copied from it: ${said}`, { isDamaged: false })
  if (status >= 500) return new StoreError(said, { isTransient: true })
  return new StoreError(status === 404 ? 'it has no log to copy: is it flux-resourceset?' : said)
}
