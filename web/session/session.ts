// The credential of this tab: in sessionStorage, and in localStorage only where somebody asked to be remembered.
import { useSyncExternalStore } from 'react'

const KEY = 'flux-resourceset.token'

export interface Session {
  readonly token: string | undefined
  /** Why the last session ended, where that was not asked for. */
  readonly ended: string | undefined
}

let session: Session = { token: read(), ended: undefined }
const listeners = new Set<() => void>()

function read(): string | undefined {
  return sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? undefined
}

function change(next: Session): void {
  session = next
  for (const listener of listeners) listener()
}

export function currentToken(): string | undefined {
  return session.token
}

export function logIn(token: string, isRemembered: boolean): void {
  sessionStorage.setItem(KEY, token)
  if (isRemembered) localStorage.setItem(KEY, token)
  change({ token, ended: undefined })
}

/** Forgets the credential everywhere; other tabs that were remembered log out too. */
export function logOut(ended?: string): void {
  if (session.token === undefined) return
  sessionStorage.removeItem(KEY)
  localStorage.removeItem(KEY)
  change({ token: undefined, ended })
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener)
  return () => listeners.delete(listener)
}

export function useSession(): Session {
  return useSyncExternalStore(subscribe, () => session)
}

window.addEventListener('storage', ({ key, newValue }) => {
  if (key !== KEY || newValue !== null) return
  sessionStorage.removeItem(KEY)
  change({ token: undefined, ended: 'You logged out in another tab.' })
})
