// Follows /watch and marks what changed as out of date; while that stream is down, everything is asked for in turns.
import type { QueryClient } from '@tanstack/react-query'
import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { useSyncExternalStore } from 'react'
import { open } from './client.ts'
import type { Topic } from './queries.ts'

export type LiveState = 'connecting' | 'live' | 'polling'

/** Revisions may follow each other quickly: what they change is read again this often at most. */
const GATHER_MS = 1000
/** The service sends something every 15 seconds. */
const SILENT_MS = 40_000
const BACK_OFF_MS = { least: 1000, most: 30_000 }
const POLL_MS = 20_000
const TOPICS: Readonly<Record<string, readonly Topic[]>> = {
  revision: ['revisions', 'documents', 'status', 'rollouts', 'tokens'],
  status: ['status'],
  rollout: ['rollouts'],
}

let state: LiveState = 'connecting'
const listeners = new Set<() => void>()

function enter(next: LiveState): void {
  if (next === state) return
  state = next
  for (const listener of listeners) listener()
}

export function useLiveState(): LiveState {
  return useSyncExternalStore(
    (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    () => state,
  )
}

/** Runs until it is stopped, by the function that it returns. */
export function startLive(client: QueryClient): () => void {
  const stopped = new AbortController()
  const gathered = gatherer(client)
  const polls = window.setInterval(() => {
    if (state !== 'live' && document.visibilityState === 'visible') void client.invalidateQueries()
  }, POLL_MS)
  void follow(stopped.signal, gathered.add, () => client.invalidateQueries())
  return () => {
    stopped.abort()
    gathered.stop()
    window.clearInterval(polls)
    enter('connecting')
  }
}

function gatherer(client: QueryClient) {
  const topics = new Set<Topic>()
  let timer: number | undefined
  const flush = (): void => {
    timer = undefined
    for (const topic of topics) void client.invalidateQueries({ queryKey: [topic] })
    topics.clear()
  }
  return {
    add({ event = '' }: EventSourceMessage): void {
      for (const topic of TOPICS[event] ?? []) topics.add(topic)
      if (topics.size > 0) timer ??= window.setTimeout(flush, GATHER_MS)
    },
    stop: () => window.clearTimeout(timer),
  }
}

/** Reconnects for ever, each time later, and then reads everything again: status has no place to go on from. */
async function follow(
  signal: AbortSignal,
  onEvent: (event: EventSourceMessage) => void,
  onBack: () => void,
): Promise<void> {
  let wait = BACK_OFF_MS.least
  let isFirst = true
  while (!signal.aborted) {
    try {
      await stream(signal, onEvent, () => {
        if (!isFirst) onBack()
        isFirst = false
        wait = BACK_OFF_MS.least
        enter('live')
      })
    } catch {
      // Whatever it was, the next attempt shows whether it still is.
    }
    if (signal.aborted) return
    enter('polling')
    await new Promise((resolve) => setTimeout(resolve, wait * (0.5 + Math.random() / 2)))
    wait = Math.min(2 * wait, BACK_OFF_MS.most)
  }
}

async function stream(
  signal: AbortSignal,
  onEvent: (event: EventSourceMessage) => void,
  onOpen: () => void,
): Promise<void> {
  const silent = new AbortController()
  const both = AbortSignal.any([signal, silent.signal])
  let timer = window.setTimeout(() => silent.abort(), SILENT_MS)
  try {
    const { body } = await open({ method: 'GET', path: '/watch', query: { status: true }, signal: both })
    if (!body) return
    onOpen()
    const parser = createParser({ onEvent })
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      window.clearTimeout(timer)
      timer = window.setTimeout(() => silent.abort(), SILENT_MS)
      parser.feed(part.value)
    }
  } finally {
    window.clearTimeout(timer)
  }
}
