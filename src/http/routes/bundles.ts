// Bootstrap bundles: the manifests that a new cluster applies once to phone home.
import type { FastifyRequest } from 'fastify'
import { YAML_TYPE } from '../../api/media-types.ts'
import { parseDuration } from '../../base/duration.ts'
import { invalid, type Result, succeed } from '../../base/problem.ts'
import { parseBaseUrl } from '../../base/urls.ts'
import { renderBundle, warnOfBundle } from '../../bootstrap/bootstrap-bundle.ts'
import { ACK_LEVELS, type BundleOptions } from '../../bootstrap/bundle-options.ts'
import type { RegisteredType } from '../../registry/build-types.ts'
import { matchesFormat, schemaOf } from '../../registry/validator.ts'
import { ok, READING_ONE } from '../openapi/openapi-operation.ts'
import { idSchema } from '../openapi/openapi-types.ts'
import { flag, inPath, inQuery, type Parameter, type Query } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { readEntry } from '../request/read-at.ts'
import { warningHeaders } from '../request/warning-header.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const DEFAULT_FLAVOR = 'concrete'
const DEFAULT_INTERVAL = '5m'
const DEFAULT_ACK = 'components'
const DEFAULT_EVENTS = 'on'
const NO_URL =
  'must be where clusters reach the service, an http:// or https:// URL such as https://fleet.example.com'

const OPTIONS: readonly Parameter[] = [
  inQuery('flavor', 'With the URLs of this cluster, or the same for every cluster.', {
    type: 'string',
    enum: ['concrete', 'identity'],
    default: DEFAULT_FLAVOR,
  }),
  inQuery(
    'interval',
    'How often each provider polls, from 1s to 24h.',
    { type: 'string', pattern: '^(?:[0-9]{1,5}[hms])+$', default: DEFAULT_INTERVAL },
    (text) =>
      isInterval(text)
        ? undefined
        : `must be a duration from 1s to 24h, such as 30s, 5m or 1h, not "${text}"`,
  ),
  inQuery(
    'api_url',
    'Where clusters reach the service, such as https://fleet.example.com. Default: EXTERNAL_URL.',
    { type: 'string', pattern: '^\\s*[Hh][Tt][Tt][Pp][Ss]?:' },
    (text) => (parseBaseUrl(text) === undefined ? NO_URL : undefined),
  ),
  secret('token_secret', 'A Secret that is there already and holds the token.'),
  secret('cert_secret', 'A Secret with a certificate for the connection.'),
  flag('flux_instance', 'Whether Flux itself is installed.', true),
  inQuery(
    'ack',
    'Reports of the cluster: components that are ready and answers that are applied, answers alone, or nothing.',
    { type: 'string', enum: [...ACK_LEVELS], default: DEFAULT_ACK },
  ),
  inQuery('events', "Whether Flux's events are sent to the service.", {
    type: 'string',
    enum: ['on', 'off'],
    default: DEFAULT_EVENTS,
  }),
]

function secret(name: string, description: string): Parameter {
  const schema = { type: 'string', ...schemaOf('dns-subdomain') }
  return inQuery(name, description, schema, (text) =>
    matchesFormat('dns-subdomain', text) ? undefined : `must be the name of a Secret, not "${text}"`,
  )
}

export function bundleRoutes(service: Service): Route[] {
  const { types, templates } = service
  const clusters = types.get(types.cluster.type.name) as RegisteredType
  return [
    route<'cluster'>({
      method: 'GET',
      path: `/${clusters.name}/{cluster}/bootstrap`,
      access: 'read',
      tag: clusters.name,
      id: `bootstrap_${clusters.name}`,
      summary:
        'The bootstrap bundle: manifests that the cluster applies once to phone home, as a stream of YAML.',
      description:
        'Several YAML documents: the input providers and ResourceSets of all types, what reports back, and Flux itself unless that is left out.',
      parameters: [inPath('cluster', 'Id of the cluster.', idSchema(clusters)), ...OPTIONS],
      answers: {
        200: {
          ...ok('The manifests, several documents in one stream.', {}, ['X-Request-Id', 'Warning']),
          content: { [YAML_TYPE]: {} },
        },
      },
      problems: READING_ONE,
      handler: async (request, reply) => {
        const options = optionsIn(request.query, request, service)
        if (!options.ok) return sendProblem(reply, options.problem)
        const cluster = await readEntry(service, request, reply, clusters, request.params.cluster)
        if (!cluster.ok) return sendProblem(reply, cluster.problem)
        const bundle = renderBundle(types, templates, cluster.value.value.document, options.value)
        const warnings = warnOfBundle(types, templates, options.value.ack !== 'off')
        if (warnings.length > 0) reply.header('Warning', warningHeaders(warnings))
        return reply.type(YAML_TYPE).send(bundle)
      },
    }),
  ]
}

/** The options of a bundle, from a checked query. */
function optionsIn(
  query: Query,
  request: FastifyRequest,
  { externalUrl, isProxied }: Service,
): Result<BundleOptions> {
  const { flavor = DEFAULT_FLAVOR, interval = DEFAULT_INTERVAL, token_secret, cert_secret } = query
  const apiUrl =
    query.api_url === undefined
      ? (externalUrl ?? ownUrl(request, isProxied(request.raw)))
      : parseBaseUrl(query.api_url)
  if (apiUrl === undefined) return invalid([{ path: '?api_url', message: NO_URL }])
  return succeed({
    flavor: flavor as BundleOptions['flavor'],
    apiUrl,
    interval,
    tokenSecret: token_secret,
    certSecret: cert_secret,
    fluxInstance: query.flux_instance !== 'false',
    ack: (query.ack ?? DEFAULT_ACK) as BundleOptions['ack'],
    events: (query.events ?? DEFAULT_EVENTS) === 'on',
  })
}

/** The URL that the client called: that of the proxy in front, where the proxy is trusted. */
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
  // Durations of Kubernetes have no unit for days.
  const seconds = text.includes('d') ? 0 : (parseDuration(text) ?? 0)
  return seconds >= 1 && seconds <= 24 * 3600
}
