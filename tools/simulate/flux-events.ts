// The events that Flux's controllers tell of: components that became ready or failed, ResourceSets that were applied.
import type { FluxEvent } from './exchange.ts'

export type ComponentKind = 'HelmRelease' | 'Kustomization'

const CONTROLLERS = {
  HelmRelease: {
    apiVersion: 'helm.toolkit.fluxcd.io/v2',
    controller: 'helm-controller',
    succeeded: { reason: 'UpgradeSucceeded', text: 'Helm upgrade succeeded for release' },
    failed: { reason: 'UpgradeFailed', text: 'Helm upgrade failed for release' },
  },
  Kustomization: {
    apiVersion: 'kustomize.toolkit.fluxcd.io/v1',
    controller: 'kustomize-controller',
    succeeded: { reason: 'ReconciliationSucceeded', text: 'Reconciliation finished for' },
    failed: { reason: 'HealthCheckFailed', text: 'health check failed for' },
  },
  ResourceSet: {
    apiVersion: 'fluxcd.controlplane.io/v1',
    controller: 'flux-operator',
    succeeded: { reason: 'ApplySucceeded', text: 'Server-Side Apply succeeded for' },
    failed: { reason: 'ReconciliationFailed', text: 'server-side apply dry-run failed for' },
  },
} as const

const CAUSES = {
  HelmRelease: 'context deadline exceeded',
  Kustomization: 'timeout waiting for: [Deployment/app status: InProgress]',
  ResourceSet: 'an object was refused by the API server',
} as const

interface Stamped {
  readonly id: string
  readonly kind: ComponentKind
  readonly digest: string
  readonly revision: string
}

/** What the controller of a component says of it. */
export function componentEvent(component: Stamped, isFailure: boolean, at: number): FluxEvent {
  const { id, kind, digest, revision } = component
  return eventOf(kind, id, isFailure, at, { digest, revision })
}

/** What the operator says of the ResourceSet of an endpoint. */
export function resourceSetEvent(endpoint: string, isFailure: boolean, at: number): FluxEvent {
  return eventOf('ResourceSet', endpoint, isFailure, at, {})
}

function eventOf(
  kind: keyof typeof CONTROLLERS,
  name: string,
  isFailure: boolean,
  at: number,
  metadata: Readonly<Record<string, string>>,
): FluxEvent {
  const { apiVersion, controller, succeeded, failed } = CONTROLLERS[kind]
  const { reason, text } = isFailure ? failed : succeeded
  const uid = '00000000-0000-4000-8000-000000000000'
  return {
    involvedObject: { apiVersion, kind, namespace: 'flux-system', name, uid, resourceVersion: '1' },
    severity: isFailure ? 'error' : 'info',
    timestamp: new Date(at).toISOString(),
    reason,
    message: isFailure ? `${text} ${name}: ${CAUSES[kind]}` : `${text} ${name}`,
    metadata,
    reportingController: controller,
    reportingInstance: `${controller}-0`,
  }
}
