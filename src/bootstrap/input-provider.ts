// The providers that poll the service.
import type { JsonObject } from '../base/json.ts'
import { MAX_INPUTS } from '../domain/guards/answer-limits.ts'
import { NAMESPACE, TOKEN_SECRET } from './bundle-names.ts'
import type { BundleOptions } from './bundle-options.ts'
import { templateText } from './bundle-yaml.ts'

export const FLUX_API = 'fluxcd.controlplane.io/v1'

export function pollingProvider(name: string, url: string, options: BundleOptions): JsonObject {
  const { interval, tokenSecret = TOKEN_SECRET, certSecret } = options
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSetInputProvider',
    metadata: {
      name,
      namespace: NAMESPACE,
      annotations: { 'fluxcd.controlplane.io/reconcileEvery': interval },
    },
    spec: {
      type: 'ExternalService',
      url,
      ...(url.startsWith('http://') && { insecure: true }),
      secretRef: { name: tokenSecret },
      ...(certSecret !== undefined && { certSecretRef: { name: certSecret } }),
      // Flux would cut the list off after 100, and delete the rest.
      filter: { limit: MAX_INPUTS },
    },
  }
}

/** The provider of a type. The default value is part of all its inputs: templates read there whether to mark each one. */
export function typeProvider(endpoint: string, url: string, options: BundleOptions): JsonObject {
  const provider = pollingProvider(endpoint, url, options)
  if (options.ack !== 'components') return provider
  return { ...provider, spec: { ...(provider.spec as JsonObject), defaultValues: { ack: options.ack } } }
}

/** A provider as a part of a template; `url` is an expression of the template. */
export function providerTemplate(provider: JsonObject, url: string): string {
  const insecure = `  <<- if hasPrefix "http://" ${url} >>\n  insecure: true\n  <<- end >>\n`
  return templateText(provider).replace('  secretRef:', `${insecure}  secretRef:`)
}
