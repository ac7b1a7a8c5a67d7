// What this browser keeps for whoever sits at it, such as saved views: nothing secret, and nothing that the service needs.
import { useSyncExternalStore } from 'react'
import type { Json } from '../../src/base/json.ts'

export interface Kept<T> {
  readonly use: () => T
  readonly set: (next: T) => void
}

/** `read` makes sense of whatever is there; all tabs of the browser share it. */
export function createKept<T>(name: string, read: (stored: Json | undefined) => T): Kept<T> {
  const key = `flux-resourceset.${name}`
  let text: string | null | undefined
  let value: T
  const current = (): T => {
    const stored = localStorage.getItem(key)
    if (stored !== text) {
      text = stored
      value = read(parse(stored))
    }
    return value
  }
  const listeners = new Set<() => void>()
  const tell = (): void => {
    for (const listener of listeners) listener()
  }
  window.addEventListener('storage', tell)
  const subscribe = (listener: () => void) => {
    listeners.add(listener)
    return () => listeners.delete(listener)
  }
  return {
    use: () => useSyncExternalStore(subscribe, current),
    set: (next) => {
      localStorage.setItem(key, JSON.stringify(next))
      tell()
    },
  }
}

function parse(text: string | null): Json | undefined {
  try {
    return text === null ? undefined : (JSON.parse(text) as Json)
  } catch {
    return undefined
  }
}
