// The upstream of a mirror: another service's log and its stream of changes, over HTTPS.
import { isObject } from '../base/json.ts'
import { type EvidenceReport, MAX_REPORTS, MAX_REPORTS_BYTES } from '../domain/status/evidence-report.ts'
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

/** How long reports may take: a mirror that stops waits for the last. */
const REPORT_MS = 10_000
/** How long an upstream of an older version is left alone. */
const UNREPORTABLE_MS = 600_000
const TAKES_NO_REPORTS = new StoreError('it takes no reports of what clusters do: is it an older version?')
/** Characters of reports in one request; the upstream's limit is in bytes, and most characters take one. */
const REPORTS_LENGTH = MAX_REPORTS_BYTES / 4

/** Every method throws StoreError when the upstream cannot be reached or refuses. */
export class Upstream {
  readonly #options: UpstreamOptions
  #unreportableUntil = 0

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

  /** Sends what clusters reported here. An upstream that does not know how to take it is not asked again for a while. */
  async report(reports: readonly EvidenceReport[]): Promise<void> {
    if (performance.now() < this.#unreportableUntil) throw TAKES_NO_REPORTS
    for (const body of bodiesOf(reports)) {
      const headers = { 'content-type': 'application/json' }
      const response = await this.#fetch('/reports', REPORT_MS, { method: 'POST', headers, body })
      await response.body?.cancel()
    }
  }

  #get(target: string): Promise<Response> {
    return this.#fetch(target, SILENCE_MS)
  }

  async #fetch(target: string, ms: number, { headers, ...init }: RequestInit = {}): Promise<Response> {
    const { url, token, signal } = this.#options
    const silence = new AbortController()
    const timer = setTimeout(() => silence.abort(), ms)
    try {
      const response = await fetch(`${url}${target}`, {
        ...init,
        headers: { ...headers, authorization: `Bearer ${token()}` },
        redirect: 'error',
        signal: AbortSignal.any([signal, silence.signal]),
      })
      if (response.ok) return response
      if (init.method === 'POST' && (response.status === 404 || response.status === 405)) {
        await response.body?.cancel()
        this.#unreportableUntil = performance.now() + UNREPORTABLE_MS
        throw TAKES_NO_REPORTS
      }
      throw await refusal(response)
    } catch (error) {
      throw error instanceof StoreError ? error : unreachable(error as Error)
    } finally {
      clearTimeout(timer)
    }
  }
}

/** Requests that are each within the upstream's limits. */
function* bodiesOf(reports: readonly EvidenceReport[]): Generator<string> {
  let texts: string[] = []
  let length = 0
  for (const report of reports) {
    const text = JSON.stringify(report)
    if (texts.length === MAX_REPORTS || length + text.length > REPORTS_LENGTH) {
      yield `{"reports":[${texts}]}`
      texts = []
      length = 0
    }
    texts.push(text)
    length += text.length + 1
  }
  if (texts.length > 0) yield `{"reports":[${texts}]}`
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
