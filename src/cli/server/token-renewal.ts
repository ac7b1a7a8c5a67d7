// Renewal of the token of somebody who has logged in, for as long as a command takes.
import type { Settings } from '../config/settings.ts'
import type { Terminal } from '../output/terminal.ts'

interface Options {
  readonly terminal: Pick<Terminal, 'env'>
  readonly version: string
}

/** Returns a function that renews the login of settings, where they have one; loads what that takes only then. */
export function tokenRenewal({ terminal: { env }, version }: Options) {
  return async (settings: Settings): Promise<Settings> => {
    if (!settings.login) return settings
    const { renewLogin } = await import('./renew-login.ts')
    return renewLogin(settings, { env, version })
  }
}
