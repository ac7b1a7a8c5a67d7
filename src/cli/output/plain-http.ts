// The warning before a token is sent in plain http.
import { isSecure } from '../../base/urls.ts'
import { painter, type Terminal } from './terminal.ts'

const warned = new WeakSet<Terminal>()

/** Warns once of a URL that is plain http to another machine, unless the context or the environment allows it. */
export function warnOfPlainHttp(terminal: Terminal, url: URL, isAllowed = false): void {
  const { env, stderr } = terminal
  if (isSecure(url) || isAllowed || env.FLUX_API_ALLOW_HTTP === 'true' || warned.has(terminal)) return
  warned.add(terminal)
  const warning = painter(terminal, stderr)('yellow', 'Warning:')
  stderr.write(
    `${warning} ${url.origin} is plain http: whoever is in between can read your token (FLUX_API_ALLOW_HTTP=true says that you know)\n`,
  )
}
