// Asks systems outside of the service whether a wave is well: signed, again and again with back-off, until they answer.
import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { isObject, type Json, own } from '../../base/json.ts'
import { isBelowOneOf } from '../../base/urls.ts'
import type { ActiveRollout } from '../../domain/rollouts/active-rollout.ts'
import type { AskedCheck } from '../../domain/rollouts/advance.ts'
import type { Rollout, Wave } from '../../domain/rollouts/rollout.ts'
import { backoff } from '../../runtime/backoff.ts'

export interface CheckSettings {
  /** Only these URLs, and what is below them, are asked. */
  readonly urls: readonly string[]
  /** What requests are signed with. Throws when it cannot be read. */
  key(): string
}

/** What a system said about a wave of a rollout as it was then. */
export interface Answered {
  readonly rollout: Rollout
  readonly wave: string
  readonly name: string
  readonly ok: boolean
  readonly remark?: string
}

interface AskerParts {
  readonly settings: CheckSettings | undefined
  answered(answered: Answered): Promise<void>
  /** Called with why there was no answer, once for each question. */
  readonly failed: (problem: unknown) => void
}

const FIRST_DELAY_MS = 1000
const MAX_DELAY_MS = 60_000
/** One request takes no longer. */
const REQUEST_MS = 10_000
const MAX_RESPONSE_BYTES = 64 * 1024
const MAX_REMARK = 1000

export class CheckAsker {
  readonly #parts: AskerParts
  /** By question: what ends it. */
  readonly #asked = new Map<string, AbortController>()
  readonly #running = new Set<Promise<void>>()
  #wanted = new Set<string>()

  constructor(parts: AskerParts) {
    this.#parts = parts
  }

  /** What is not asked for until the look ends is not asked any more. */
  beginLook(): void {
    this.#wanted = new Set()
  }

  ask({ rollout }: ActiveRollout, check: AskedCheck): void {
    const wave = rollout.waves[check.wave] as Wave
    const question = [rollout.id, rollout.plan, wave.name, check.name, wave.checks_since].join('\n')
    this.#wanted.add(question)
    if (this.#asked.has(question)) return
    const ending = new AbortController()
    this.#asked.set(question, ending)
    const running = this.#run(rollout, wave, check, ending.signal).finally(() => {
      this.#asked.delete(question)
      this.#running.delete(running)
    })
    this.#running.add(running)
  }

  endLook(): void {
    for (const [question, ending] of this.#asked) if (!this.#wanted.has(question)) ending.abort()
  }

  async stop(): Promise<void> {
    for (const ending of this.#asked.values()) ending.abort()
    await Promise.all(this.#running)
  }

  async #run(rollout: Rollout, wave: Wave, check: AskedCheck, signal: AbortSignal): Promise<void> {
    const delays = backoff({ first: FIRST_DELAY_MS, max: MAX_DELAY_MS })
    for (let tries = 0; !signal.aborted; tries++) {
      const answer = await this.#post(rollout, wave, check, signal)
      if (signal.aborted) return
      if ('ok' in answer)
        return this.#parts.answered({ rollout, wave: wave.name, name: check.name, ...answer })
      if (tries === 0)
        this.#parts.failed(
          new Error(
            `check ${check.name} of wave ${wave.name} of rollout ${rollout.id} has no answer yet: ${answer.why}`,
          ),
        )
      await sleep(delays.next(), undefined, { signal, ref: false }).catch(() => {})
    }
  }

  async #post(
    rollout: Rollout,
    wave: Wave,
    { name, url }: AskedCheck,
    signal: AbortSignal,
  ): Promise<Answer | { readonly why: string }> {
    const { settings } = this.#parts
    // The URL itself may hold a secret.
    const where = URL.parse(url)?.origin ?? 'its URL'
    if (!settings || !isBelowOneOf(url, settings.urls)) return { why: `${where} is not allowed any more` }
    const { id, plan, started_by, message, operation } = rollout
    const asked = { rollout: id, wave: wave.name, check: name, plan, members: wave.members }
    const body = JSON.stringify({ ...asked, started_by, message, operation })
    try {
      const response = await fetch(url, {
        method: 'POST',
        redirect: 'manual',
        headers: { 'Content-Type': 'application/json', 'X-Signature': signatureOf(body, settings.key()) },
        body,
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS)]),
      })
      const text = await readText(response)
      if (response.status !== 200) return { why: `${where} answered ${response.status}` }
      return parseAnswer(text) ?? { why: `${where} answered something else than {"ok": true} or false` }
    } catch (error) {
      return { why: `${where} cannot be asked: ${reasonOf(error)}` }
    }
  }
}

interface Answer {
  readonly ok: boolean
  readonly remark?: string
}

function signatureOf(body: string, key: string): string {
  return `sha256=${createHmac('sha256', key).update(body).digest('hex')}`
}

/** Undefined where there is more than is taken; the rest is not read. */
async function readText({ body }: Response): Promise<string | undefined> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of body ?? []) {
    length += piece.length
    if (length > MAX_RESPONSE_BYTES) return undefined
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function parseAnswer(text: string | undefined): Answer | undefined {
  let value: Json
  try {
    value = JSON.parse(text ?? '')
  } catch {
    return undefined
  }
  const ok = isObject(value) ? own(value, 'ok') : undefined
  if (typeof ok !== 'boolean') return undefined
  const message = isObject(value) ? own(value, 'message') : undefined
  if (typeof message !== 'string' || message === '') return { ok }
  // Not every database can store such text.
  return { ok, remark: message.slice(0, MAX_REMARK).toWellFormed().replaceAll('\0', '') }
}

function reasonOf(error: unknown): string {
  const { message, cause } = error as Error
  return cause instanceof Error ? cause.message : message
}
