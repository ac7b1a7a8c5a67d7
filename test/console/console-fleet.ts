// A fleet to look at: healthy, failing, late and silent clusters, some history, and texts that try to be HTML.
import type { Json } from '../../src/base/json.ts'
import { READ_TOKEN, type TestService } from '../service.ts'

export const ATTACK = '<img src=x onerror=alert(1)><script>alert(2)</script>'
const ENVIRONMENTS = ['dev', 'qa', 'uat', 'prod'] as const

/** `count` clusters, named by tier and number, with components in a chain. */
export function consoleFleet(count = 40) {
  const component = (id: string, depends_on: string[] = []) => ({
    id,
    component_path: `core/${id}/1.0.0`,
    component_version: '1.0.0',
    oci_url: 'oci://registry.example.com/components',
    oci_tag: 'v1.0.0',
    depends_on,
  })
  return {
    platform_components: [
      component('cert-manager'),
      component('traefik', ['cert-manager']),
      component('podinfo', ['traefik']),
    ],
    namespaces: [{ id: 'podinfo', annotations: { note: ATTACK } }],
    clusters: Array.from({ length: count }, (_, i) => {
      const environment = ENVIRONMENTS[i % ENVIRONMENTS.length] as string
      const id = `${environment}-eu-${String(i).padStart(2, '0')}`
      return {
        id,
        cluster_name: i === 0 ? ATTACK : id,
        cluster_dns: `${id}.k8s.example.com`,
        environment,
        labels: { region: i % 2 === 0 ? 'eu' : 'us' },
        platform_components: ['cert-manager', 'traefik', 'podinfo'].map((component) => ({ id: component })),
        namespaces: [{ id: 'podinfo' }],
        patches: i === 0 ? { podinfo: { message: ATTACK } } : {},
      }
    }),
  }
}

/** Lets clusters poll and report, and one of them fail with a message that tries to be HTML. */
export async function letFleetSpeak(service: TestService, ids: readonly string[]): Promise<void> {
  for (const id of ids) {
    const base = `/api/v2/flux/clusters/${id}.k8s.example.com`
    for (const endpoint of ['platform-components', 'namespaces', 'rolebindings'])
      await expectOk(service, 'GET', `${base}/${endpoint}`)
  }
  const [first] = ids
  if (first === undefined) return
  await expectOk(service, 'POST', `/api/v2/flux/clusters/${first}.k8s.example.com/events`, {
    involvedObject: { kind: 'HelmRelease', name: 'podinfo', namespace: 'flux-system' },
    severity: 'error',
    reason: 'InstallFailed',
    message: `helm install failed: ${ATTACK}`,
    timestamp: new Date().toISOString(),
    metadata: {},
  })
}

async function expectOk(service: TestService, method: string, path: string, body?: Json): Promise<void> {
  const answer = await service.call(method, path, { body, ...(method === 'GET' && { token: READ_TOKEN }) })
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`)
}
