// What sends Flux's events to the service: reasons of failures, while reports say what is there.
import type { JsonObject } from '../base/json.ts'
import { EVENTS, NAMESPACE, OPERATOR_EVENTS, TOKEN_SECRET } from './bundle-names.ts'
import type { BundleOptions } from './bundle-options.ts'
import { FLUX_API } from './input-provider.ts'

const NOTIFICATION_API = 'notification.toolkit.fluxcd.io/v1beta3'
/** Successes, too: they end failures. */
const FLUX_KINDS = ['HelmRelease', 'Kustomization', 'HelmChart', 'HelmRepository', 'OCIRepository']
/** Failures alone: marks that wait say so all the time. Providers are left out: all fail while the service is away. */
const OPERATOR_KINDS = ['ResourceSet', 'FluxInstance']
const KNOWS_OPERATOR_KINDS =
  "spec.versions.exists(v, 'ResourceSet' in v.schema.openAPIV3Schema.properties.spec.properties.eventSources.items.properties.kind.enum)"

/**
 * The ResourceSets that make the Provider and the Alerts, once Flux is installed. The Alert of the operator's own kinds
 * is apart: a Flux that the operator has not installed does not take it.
 */
export function eventSets(url: string, options: BundleOptions): JsonObject[] {
  const { tokenSecret = TOKEN_SECRET, certSecret } = options
  const provider = {
    apiVersion: NOTIFICATION_API,
    kind: 'Provider',
    metadata: { name: EVENTS, namespace: NAMESPACE },
    spec: {
      type: 'generic',
      address: url,
      secretRef: { name: tokenSecret },
      ...(certSecret !== undefined && { certSecretRef: { name: certSecret } }),
    },
  }
  const alerts = definitionOf('alerts')
  return [
    resourceSet(EVENTS, [definitionOf('providers'), alerts], [provider, alert(EVENTS, 'info', FLUX_KINDS)]),
    resourceSet(
      OPERATOR_EVENTS,
      [{ ...alerts, ready: true, readyExpr: KNOWS_OPERATOR_KINDS }],
      [alert(OPERATOR_EVENTS, 'error', OPERATOR_KINDS)],
    ),
  ]
}

function definitionOf(plural: string): JsonObject {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    name: `${plural}.notification.toolkit.fluxcd.io`,
  }
}

function alert(name: string, eventSeverity: string, kinds: readonly string[]): JsonObject {
  return {
    apiVersion: NOTIFICATION_API,
    kind: 'Alert',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      providerRef: { name: EVENTS },
      eventSeverity,
      eventSources: kinds.map((kind) => ({ kind, name: '*' })),
    },
  }
}

function resourceSet(name: string, dependsOn: JsonObject[], resources: JsonObject[]): JsonObject {
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSet',
    metadata: { name, namespace: NAMESPACE },
    spec: { dependsOn, resources },
  }
}
