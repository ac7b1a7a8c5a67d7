// What mirrors forward: the polls, reports, refusals and failures of clusters that they have noted.
import type { FastifyRequest } from 'fastify'
import { isObject, type Json } from '../../base/json.ts'
import { type Detail, fail, forbidden, invalid, MAX_FOUND, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import { parseSelector } from '../../domain/access/selector.ts'
import { findVersion } from '../../domain/documents/find-document.ts'
import { type EvidenceReport, MAX_REPORTS, MAX_REPORTS_BYTES } from '../../domain/status/evidence-report.ts'
import { EVIDENCE_KINDS, type EvidenceKind, isKeyOf, partsOf } from '../../engine/fleet/evidence-notes.ts'
import { noteOfReport } from '../../engine/fleet/forward-evidence.ts'
import { runTimeSliced } from '../../runtime/run-time-sliced.ts'
import { identityOf } from '../auth/identity.ts'
import { example, json, ok, READING } from '../openapi/openapi-operation.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

/** Characters of a key: the id of a cluster, and the name of an object on it. */
const MAX_KEY = 600
/** Characters of a value, and the oldest that is worth telling. */
const MAX_VALUE = 16_384
const MAX_AGE_MS = 10 * 365 * 86_400_000

const SCHEMA = {
  type: 'object',
  required: ['reports'],
  additionalProperties: false,
  properties: {
    reports: {
      type: 'array',
      maxItems: MAX_REPORTS,
      items: {
        type: 'object',
        required: ['kind', 'key', 'age_ms', 'value'],
        additionalProperties: false,
        properties: {
          kind: { type: 'string', enum: EVIDENCE_KINDS },
          key: { type: 'string', minLength: 1, maxLength: MAX_KEY, example: 'us-east-prod-01' },
          age_ms: { type: 'integer', minimum: 0, maximum: MAX_AGE_MS, example: 1200 },
          value: { type: ['array', 'null'], items: {} },
        },
      },
    },
  },
}
const EXAMPLE = {
  reports: [{ kind: 'refusals', key: 'us-east-prod-01', age_ms: 1200, value: [403, 'other_cluster'] }],
}

export function reportRoutes(service: Service): Route[] {
  return [
    route({
      method: 'POST',
      path: '/reports',
      access: 'mirror',
      tag: 'status',
      id: 'forward_reports',
      summary: 'Takes what a mirror has noted of its clusters.',
      description:
        'For tokens of the role mirror or admin; one with a selector reports on those clusters alone. Times are ages, since clocks differ: in values they are milliseconds from the moment of sending on, and so negative. Of two reports with one key the newer counts. Events of unknown clusters are ignored.',
      isReport: true,
      body: { content: json(SCHEMA, undefined, example(EXAMPLE)), limit: MAX_REPORTS_BYTES },
      answers: { 202: ok('Taken.', { type: 'object' }, ['X-Request-Id']) },
      problems: [...READING, 413, 415],
      handler: async (request, reply) => {
        const taken = await takeAll(service, request)
        if (!taken.ok) return sendProblem(reply, taken.problem)
        return reply.code(202).header('Cache-Control', 'no-store').send({})
      },
    }),
  ]
}

async function takeAll(service: Service, request: FastifyRequest): Promise<Result<void>> {
  const reports = parseReports(request.body as Json)
  if (!reports.ok) return reports
  return runTimeSliced(take(service, request, reports.value), request.left)
}

/** Takes all or none: a mirror that reports on what is not its own is refused. */
function* take(
  service: Service,
  request: FastifyRequest,
  reports: readonly EvidenceReport[],
): Steps<Result<void>> {
  const { engine, now } = service
  const scope = scopeOf(service, request)
  if (!scope.ok) return scope
  for (const [i, { key }] of reports.entries()) {
    yield
    const [cluster] = partsOf(key)
    if (scope.value(cluster)) continue
    const path = `/reports/${i}/key`
    return fail(
      forbidden('out_of_scope', `${path} is of cluster "${cluster}", which is outside of your scope`),
    )
  }
  const time = now().getTime()
  for (const report of reports) {
    yield
    const kind = report.kind as EvidenceKind
    engine.fleet.take(kind, noteOfReport(kind, report, time))
  }
  return succeed(undefined)
}

/** Whether the caller may report on a cluster; unknown ones are ignored later. */
function scopeOf({ types, engine }: Service, request: FastifyRequest): Result<(cluster: string) => boolean> {
  const { selector: text } = identityOf(request).grant
  if (text === undefined) return succeed(() => true)
  const parsed = parseSelector(types, text)
  if (!parsed.ok) return fail(forbidden('invalid_scope', `the selector of your scope ${parsed.message}`))
  return succeed((cluster) => {
    const found = findVersion(engine.state, types.cluster.type.name, cluster)
    return found === undefined || parsed.selector.matches(found.document)
  })
}

function parseReports(body: Json): Result<readonly EvidenceReport[]> {
  const reports = isObject(body) ? body.reports : undefined
  if (!Array.isArray(reports)) return invalid([{ path: '/reports', message: 'must be a list' }])
  if (reports.length > MAX_REPORTS)
    return invalid([{ path: '/reports', message: `must be at most ${MAX_REPORTS}: send less at once` }])
  const details: Detail[] = []
  for (const [i, report] of reports.entries()) {
    if (details.length > MAX_FOUND) break
    details.push(
      ...checkReport(report).map(({ path, message }) => ({ path: `/reports/${i}${path}`, message })),
    )
  }
  return details.length > 0 ? invalid(details) : succeed(reports as readonly EvidenceReport[])
}

function checkReport(report: Json): Detail[] {
  if (!isObject(report)) return [{ path: '', message: 'must be an object' }]
  const { kind, key, age_ms: age, value } = report
  const details: Detail[] = []
  const known = EVIDENCE_KINDS.find((each) => each === kind)
  if (!known) details.push({ path: '/kind', message: `must be one of ${EVIDENCE_KINDS.join(', ')}` })
  else if (typeof key !== 'string' || key.length > MAX_KEY || !isKeyOf(known, key))
    details.push({ path: '/key', message: `is not a key of ${known}, which begins with the id of a cluster` })
  if (typeof age !== 'number' || !Number.isInteger(age) || age < 0 || age > MAX_AGE_MS)
    details.push({ path: '/age_ms', message: `must be a whole number from 0 to ${MAX_AGE_MS}` })
  if (value !== null && !(Array.isArray(value) && JSON.stringify(value).length <= MAX_VALUE))
    details.push({ path: '/value', message: `must be null, or a list of at most ${MAX_VALUE} characters` })
  return details
}
