// Sends spans to an OpenTelemetry collector: OTLP over HTTP, as JSON. Loaded only where an endpoint is set.
import { randomBytes } from 'node:crypto'
import { ReportOnce } from './report-once.ts'
import type { Attributes, Span, Tracer } from './spans.ts'

export interface OtlpOptions {
  /** Of the traces, such as http://collector:4318/v1/traces. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Who sends them: `service.name` and more. */
  readonly resource: Attributes
  readonly failed: (error: Error) => void
  readonly flushMs?: number
}

/** Spans that wait while the collector is away; beyond that the oldest are dropped. */
const MAX_WAITING = 4096
/** Spans of one request. */
const AT_ONCE = 512
const FLUSH_MS = 5000
const TIMEOUT_MS = 10_000
const STOP_MS = 3000
/** What a collector answers that may take the same spans later. */
const RETRIED = [429, 502, 503, 504]
const SERVER = 2
const INTERNAL = 1
const FAILED = 2

type Value = { stringValue: string } | { boolValue: boolean } | { intValue: string } | { doubleValue: number }
type KeyValue = { readonly key: string; readonly value: Value }

/** As OTLP has it. */
interface SentSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly KeyValue[]
  readonly status: { readonly code?: number; readonly message?: string }
}

export function startOtlpTracer(options: OtlpOptions): Tracer {
  return new OtlpTracer(options)
}

const TRACEPARENT = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

class OtlpTracer implements Tracer {
  readonly #options: OtlpOptions
  readonly #timer: NodeJS.Timeout
  readonly #reports: ReportOnce<Error>
  #waiting: SentSpan[] = []
  #sending: Promise<void> = Promise.resolve()

  constructor(options: OtlpOptions) {
    this.#options = options
    this.#reports = new ReportOnce({ failed: options.failed })
    this.#timer = setInterval(() => this.#flush(TIMEOUT_MS), options.flushMs ?? FLUSH_MS).unref()
  }

  start(name: string, traceparent: string | undefined, attributes: Attributes): Span | undefined {
    const [, traceId = randomBytes(16).toString('hex'), parent, flags] =
      TRACEPARENT.exec(traceparent ?? '') ?? []
    const isRecorded = flags === undefined || (Number.parseInt(flags, 16) & 1) === 1
    if (!isRecorded) return undefined
    const span = new RecordedSpan({ traceId, parent, name, kind: SERVER }, (ended) => this.#add(ended))
    span.set(attributes)
    return span
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    await this.#sending
    await this.#flush(STOP_MS)
  }

  #add(span: SentSpan): void {
    this.#waiting.push(span)
    if (this.#waiting.length > MAX_WAITING) this.#waiting.shift()
    if (this.#waiting.length === AT_ONCE) void this.#flush(TIMEOUT_MS)
  }

  /** One request after the other. */
  #flush(timeoutMs: number): Promise<void> {
    this.#sending = this.#sending.then(async () => {
      while (this.#waiting.length > 0) {
        const spans = this.#waiting.splice(0, AT_ONCE)
        if (await this.#send(spans, timeoutMs)) continue
        this.#waiting = [...spans, ...this.#waiting].slice(-MAX_WAITING)
        return
      }
    })
    return this.#sending
  }

  /** Returns whether these spans are dealt with: taken, or refused for good. */
  async #send(spans: readonly SentSpan[], timeoutMs: number): Promise<boolean> {
    const { url, headers, resource } = this.#options
    const scope = { name: 'flux-resourceset' }
    const body = {
      resourceSpans: [{ resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope, spans }] }],
    }
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.timeout(timeoutMs),
      })
      await response.arrayBuffer()
      if (response.ok) this.#reports.succeed()
      else this.#reports.fail(new Error(`the collector answered ${response.status}`))
      return !RETRIED.includes(response.status)
    } catch (error) {
      this.#reports.fail(error as Error)
      return false
    }
  }
}

interface Begun {
  readonly traceId: string
  readonly parent: string | undefined
  readonly name: string
  readonly kind: number
}

class RecordedSpan implements Span {
  readonly #begun: Begun
  readonly #ended: (span: SentSpan) => void
  readonly #id = randomBytes(8).toString('hex')
  readonly #startedAt = unixNano()
  #attributes: Attributes = {}
  #hasEnded = false

  constructor(begun: Begun, ended: (span: SentSpan) => void) {
    this.#begun = begun
    this.#ended = ended
  }

  child(name: string): Span {
    const { traceId } = this.#begun
    return new RecordedSpan({ traceId, parent: this.#id, name, kind: INTERNAL }, this.#ended)
  }

  set(attributes: Attributes): void {
    this.#attributes = { ...this.#attributes, ...attributes }
  }

  end(problem?: string): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    const { traceId, parent, name, kind } = this.#begun
    this.#ended({
      traceId,
      spanId: this.#id,
      ...(parent !== undefined && { parentSpanId: parent }),
      name,
      kind,
      startTimeUnixNano: this.#startedAt,
      endTimeUnixNano: unixNano(),
      attributes: keyValues(this.#attributes),
      status: problem === undefined ? {} : { code: FAILED, message: problem },
    })
  }
}

function unixNano(): string {
  const micros = Math.round((performance.timeOrigin + performance.now()) * 1000)
  return `${micros}000`
}

function keyValues(attributes: Attributes): KeyValue[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: otlpValue(value) }))
}

function otlpValue(value: string | number | boolean): Value {
  if (typeof value === 'string') return { stringValue: value }
  if (typeof value === 'boolean') return { boolValue: value }
  // 64-bit integers are strings in OTLP's JSON.
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value }
}
