// What the web console learns before anybody has logged in: nothing of it is secret.
import type { Noun } from './noun.ts'

export interface ConsoleSettings {
  readonly mode: 'read-only' | 'crud'
  readonly version: string
  /** How people log in besides tokens, where they can. */
  readonly login?: { readonly issuer: string; readonly client_id: string }
  readonly types: readonly Noun[]
}
