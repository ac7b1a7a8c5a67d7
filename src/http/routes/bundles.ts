// What a new cluster applies once to phone home.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { parseDuration } from '../../base/duration.ts'
import { type Detail, invalid, type Result, succeed } from '../../base/problem.ts'
import { parseBaseUrl } from '../../base/urls.ts'
import { type BundleOptions, renderBundle, warnOfUnread } from '../../bootstrap/bootstrap-bundle.ts'
import { matchesFormat } from '../../registry/validator.ts'
import { sendProblem } from '../request/problem-response.ts'
import type { RawQuery } from '../request/query.ts'
import { readEntry } from '../request/read-at.ts'
import { warningHeaders } from '../request/warning-header.ts'
import type { Service } from '../service.ts'

const FLAVORS = ['concrete', 'identity'] as const
const DEFAULT_INTERVAL = '5m'

const BOOTSTRAP = {
  config: {
    access: 'read',
    parameters: ['flavor', 'interval', 'api_url', 'token_secret', 'cert_secret'],
    flags: ['flux_instance'],
  },
} as const

export function bundleRoutes(app: FastifyInstance, service: Service): void {
  const { types, templates } = service
  const clusters = types.cluster.type
  const unread = warnOfUnread(types, templates)
  app.get<{ Params: { id: string }; Querystring: RawQuery }>(
    `/${clusters.name}/:id/bootstrap`,
    BOOTSTRAP,
    async (request, reply) => {
      const options = parseOptions(request, service)
      if (!options.ok) return sendProblem(reply, options.problem)
      const cluster = await readEntry(service, request, reply, clusters, request.params.id)
      if (!cluster.ok) return sendProblem(reply, cluster.problem)
      const bundle = renderBundle(types, templates, cluster.value.value.document, options.value)
      if (unread.length > 0) reply.header('Warning', warningHeaders(unread))
      return reply.type('application/yaml').send(bundle)
    },
  )
}

function parseOptions(request: FastifyRequest, { externalUrl, isProxied }: Service): Result<BundleOptions> {
  const query = request.query as Readonly<Record<string, string | undefined>>
  const { flavor = 'concrete', interval = DEFAULT_INTERVAL, token_secret, cert_secret } = query
  const details: Detail[] = []
  const refuse = (name: string, must: string): void => {
    details.push({ path: `?${name}`, message: `must be ${must}, not "${query[name]}"` })
  }
  if (!FLAVORS.some((known) => known === flavor)) refuse('flavor', `one of ${FLAVORS.join(', ')}`)
  if (!isInterval(interval)) refuse('interval', 'a duration from 1s to 24h, such as 30s, 5m or 1h')
  for (const name of ['token_secret', 'cert_secret']) {
    if (query[name] !== undefined && !matchesFormat('dns-subdomain', query[name]))
      refuse(name, 'the name of a Secret')
  }
  const apiUrl =
    query.api_url === undefined
      ? (externalUrl ?? ownUrl(request, isProxied(request.raw)))
      : parseBaseUrl(query.api_url)
  if (apiUrl === undefined)
    details.push({
      path: '?api_url',
      message:
        'must be where clusters reach the service, an http:// or https:// URL such as https://fleet.example.com',
    })
  if (details.length > 0 || apiUrl === undefined) return invalid(details)
  return succeed({
    flavor: flavor as BundleOptions['flavor'],
    apiUrl,
    interval,
    tokenSecret: token_secret,
    certSecret: cert_secret,
    fluxInstance: query.flux_instance !== 'false',
  })
}

/** As the request came here: to the proxy in front, where that is trusted to say so. */
function ownUrl({ headers, protocol, host }: FastifyRequest, isProxied: boolean): string | undefined {
  const first = (name: string): string | undefined =>
    isProxied
      ? String(headers[name] ?? '')
          .split(',')[0]
          ?.trim() || undefined
      : undefined
  return parseBaseUrl(`${first('x-forwarded-proto') ?? protocol}://${first('x-forwarded-host') ?? host}`)
}

function isInterval(text: string): boolean {
  // Kubernetes knows no days.
  const seconds = text.includes('d') ? 0 : (parseDuration(text) ?? 0)
  return seconds >= 1 && seconds <= 24 * 3600
}
