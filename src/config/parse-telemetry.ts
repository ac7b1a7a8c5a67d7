// Settings of tracing, by the names that OpenTelemetry gives them.
import { type Environment, listIn, redact } from './environment.ts'

export interface TelemetryConfig {
  /** Where traces are sent. */
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly serviceName: string
  readonly resource: Readonly<Record<string, string>>
}

const NAME = 'OTEL_EXPORTER_OTLP_ENDPOINT'

export function parseTelemetry(env: Environment, problems: string[]): TelemetryConfig | undefined {
  const text = env[NAME]
  if (!text) return undefined
  const url = URL.parse(text)
  if (!url || !['http:', 'https:'].includes(url.protocol) || url.username || url.search || url.hash)
    problems.push(`${NAME} must be a URL such as http://collector:4318, not "${redact(text)}"`)
  // Whoever takes protobuf over HTTP takes JSON on the same path.
  if (env.OTEL_EXPORTER_OTLP_PROTOCOL === 'grpc')
    problems.push(
      `OTEL_EXPORTER_OTLP_PROTOCOL grpc is not spoken here: give ${NAME} the port for HTTP, such as 4318`,
    )
  return {
    url: `${text.replace(/\/+$/, '')}/v1/traces`,
    headers: parsePairs(env, 'OTEL_EXPORTER_OTLP_HEADERS', problems),
    serviceName: env.OTEL_SERVICE_NAME || 'flux-resourceset',
    resource: parsePairs(env, 'OTEL_RESOURCE_ATTRIBUTES', problems),
  }
}

/** `key=value` pairs, separated by commas, with values percent-encoded; no value is shown, as it may be secret. */
function parsePairs(env: Environment, name: string, problems: string[]): Record<string, string> {
  const pairs: Record<string, string> = {}
  for (const item of listIn(env[name])) {
    const at = item.indexOf('=')
    const value = at > 0 ? decoded(item.slice(at + 1).trim()) : undefined
    if (value === undefined)
      problems.push(`${name} must hold key=value pairs, separated by commas, values percent-encoded`)
    else pairs[item.slice(0, at).trim()] = value
  }
  return pairs
}

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
