// What happened to the demo fleet before somebody looks at it: a week of changes, and a rollout that is under way.
import type { Json } from '../../src/base/json.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite.ts'
import { startService } from '../../test/service.ts'

const HOUR_MS = 3_600_000

interface Step {
  /** So many hours ago. */
  readonly hoursAgo: number
  readonly method: 'POST' | 'PATCH'
  readonly path: string
  readonly body: Json
  readonly message?: string
}

/** What the pages of the documentation do with the fleet stays possible: it touches nothing that they change. */
function stepsFrom(now: number): readonly Step[] {
  const inDays = (days: number): string => new Date(now + days * 24 * HOUR_MS).toISOString()
  const components = '/platform_components'
  return [
    {
      ...{ hoursAgo: 122, method: 'PATCH', path: `${components}/external-secrets` },
      ...{ body: { oci_tag: 'v1.0.1' }, message: 'external-secrets 1.0.1: a fix for stale secrets' },
    },
    {
      ...{ hoursAgo: 75, method: 'POST', path: '/batch', message: 'two replicas of Grafana in production' },
      body: valuesOf('grafana', { replicas: '2' }, 'environment=prod'),
    },
    {
      ...{
        hoursAgo: 73,
        method: 'POST',
        path: '/revisions/3/revert',
        message: 'its database takes one only',
      },
      body: {},
    },
    {
      ...{ hoursAgo: 26, method: 'POST', path: '/batch', message: 'a greeting for the shop' },
      body: valuesOf('podinfo', { 'ui.message': 'Hello from production' }, 'id=prod-eu-01'),
    },
    {
      ...{ hoursAgo: 25, method: 'POST', path: '/freezes' },
      body: {
        ...{ id: 'holidays', reason: 'nobody is here over the holidays', selector: 'environment=prod' },
        ...{ from: inDays(20), until: inDays(34) },
      },
    },
    { hoursAgo: 3, method: 'POST', path: '/strategies', body: BY_TIER },
    {
      ...{ hoursAgo: 0.1, method: 'POST', path: '/batch' },
      body: {
        message: 'Kyverno 3.2.4',
        operations: [{ op: 'patch', type: 'platform_components', id: 'kyverno', patch: KYVERNO }],
        rollout: { strategy: 'by-tier' },
      },
    },
  ]
}

function valuesOf(component: string, values: Json, selector: string): Json {
  return { operations: [{ op: 'patch_values', component, values, selector }] }
}

const KYVERNO = { component_version: '3.2.4', component_path: 'security/kyverno/3.2.4' }

/** Kyverno fails on the cluster of the first wave: it is not through before somebody decides. */
const BY_TIER = {
  id: 'by-tier',
  description: 'QA first, then by tier; production after a look at the dashboards',
  waves: [
    {
      name: 'qa',
      selector: 'environment=qa',
      gates: { applied_percent: 100, healthy_percent: 100, failures: 1, soak_s: 600 },
    },
    { name: 'dev', selector: 'environment=dev', gates: { applied_percent: 100, failures: 0, soak_s: 600 } },
    { name: 'uat', selector: 'environment=uat', gates: { applied_percent: 100, failures: 0, soak_s: 600 } },
    { name: 'prod', rest: true, max_concurrent: 1, approval: { before: { not_starter: true } } },
  ],
}

/** Into a new database at a path. */
export async function writeDemoHistory(path: string, fleet: unknown): Promise<void> {
  const now = Date.now()
  let at = now - 167 * HOUR_MS
  const store = openSqliteStore({ path, write: true })
  const service = await startService({ store, fleet, now: () => new Date(at) })
  try {
    for (const { hoursAgo, method, path: url, body, message } of stepsFrom(now)) {
      at = now - hoursAgo * HOUR_MS
      const headers = message === undefined ? {} : { 'X-Change-Message': message }
      const answer = await service.call(method, url, { body, headers })
      if (answer.status >= 300) throw new Error(`${method} ${url}: ${answer.text}`)
    }
  } finally {
    await service.stop()
  }
}
