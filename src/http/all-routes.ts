// Every route of the service, by the hooks that it needs.
import { buildOpenapi } from './openapi/openapi.ts'
import type { Node } from './openapi/openapi-operation.ts'
import type { PollHandler } from './poll/poll-handler.ts'
import type { Route } from './route.ts'
import { assignmentRoutes } from './routes/assignments.ts'
import { batchRoutes } from './routes/batch.ts'
import { bundleRoutes } from './routes/bundles.ts'
import { clusterRoutes } from './routes/clusters.ts'
import { comparisonRoutes } from './routes/compare-revisions.ts'
import { copyLogRoutes } from './routes/copy-log.ts'
import { versionRoutes } from './routes/document-versions.ts'
import { documentRoutes } from './routes/documents.ts'
import { eventRoutes } from './routes/events.ts'
import { statusRoutes } from './routes/fleet-status.ts'
import { freezeRoutes } from './routes/freezes.ts'
import { holdRoutes, holdWriteRoutes } from './routes/holds.ts'
import { issueTokensRoute } from './routes/issue-tokens.ts'
import { descriptionRoutes, metricsRoutes, probeRoutes } from './routes/operations.ts'
import { overrideRoutes } from './routes/overrides.ts'
import { pollRoutes } from './routes/poll-routes.ts'
import { profileRoutes } from './routes/profiles.ts'
import { reportRoutes } from './routes/reports.ts'
import { propagationRoutes } from './routes/revision-propagation.ts'
import { revisionRoutes } from './routes/revisions.ts'
import { rolloutActionRoutes } from './routes/rollout-actions.ts'
import { rolloutRoutes } from './routes/rollouts.ts'
import { tokenRoutes, whoamiRoutes } from './routes/tokens.ts'
import { watchRoutes } from './routes/watch-revisions.ts'
import type { Service } from './service.ts'

/** All routes, by the hooks that they need. The description lists them in this order. */
export interface Routes {
  readonly polls: readonly Route[]
  readonly api: readonly Route[]
  readonly events: readonly Route[]
  readonly reports: readonly Route[]
  readonly streams: readonly Route[]
  readonly probes: readonly Route[]
  readonly pages: readonly Route[]
  readonly openapi: () => Node
}

const CRUD_ROUTES = [
  documentRoutes,
  clusterRoutes,
  bundleRoutes,
  assignmentRoutes,
  comparisonRoutes,
  revisionRoutes,
  batchRoutes,
  rolloutActionRoutes,
  holdWriteRoutes,
  tokenRoutes,
  issueTokensRoute,
]

export function allRoutes(service: Service, handler: PollHandler): Routes {
  const { mode, types, version, login, hasAdminPort } = service
  const routes = {
    polls: pollRoutes(service, handler),
    api: [
      ...(mode === 'crud' ? CRUD_ROUTES : []).flatMap((build) => build(service)),
      ...rolloutRoutes(service),
      ...freezeRoutes(service),
      ...holdRoutes(service),
      ...statusRoutes(service),
      ...propagationRoutes(service),
      ...versionRoutes(service),
      ...overrideRoutes(service),
      ...whoamiRoutes(),
    ],
    events: eventRoutes(service),
    reports: reportRoutes(service),
    streams: [watchRoutes, copyLogRoutes, profileRoutes].flatMap((build) => build(service)),
    probes: [...probeRoutes(service), ...(hasAdminPort ? [] : metricsRoutes(service))],
    pages: descriptionRoutes(describe),
  }
  let openapi: Node | undefined
  function describe(): Node {
    openapi ??= buildOpenapi(types, Object.values(routes).flat(), { version, login })
    return openapi
  }
  return { ...routes, openapi: describe }
}

/** Probes and metrics, on a port of their own. */
export function adminRoutes(service: Service): readonly Route[] {
  return [...probeRoutes(service), ...metricsRoutes(service)]
}
