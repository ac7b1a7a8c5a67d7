// The manifests and the chart of deploy/ rendered in every way that matters, and what there is to be found in them.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, stringify } from 'yaml'
import { type Config, parseConfig } from '../../src/config/config.ts'
import { temporaryFolder } from '../service.ts'
import { everything, networkPolicy, onPostgres, required, secured, toTheFull } from './chart-values.ts'
import { run } from './tools.ts'

export const ROOT = join(import.meta.dirname, '../..')
export const CHART = join(ROOT, 'deploy/chart')
export const OVERLAYS = join(ROOT, 'deploy/kustomize/overlays')
export const NAMESPACE = 'flux-resourceset'

export const readPage = (name: string): string => readFileSync(join(ROOT, `docs/${name}.md`), 'utf8')
export const [page, highAvailability, mirrors, tlsPage] = [
  'deploying',
  'high-availability',
  'mirrors',
  'tls-on-kubernetes',
].map(readPage) as [string, string, string, string]

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects freely
export type Any = any

/** Rendered objects, and the Secrets that their users bring. */
export interface Rendered {
  readonly yaml: string
  readonly objects: Any[]
  readonly secrets: readonly string[]
}

export async function render(...args: Parameters<typeof run>): Promise<string> {
  const { code, stdout, stderr } = await run(...args)
  assert.equal(code, 0, stderr)
  return stdout
}

export function kustomize(folder: string): Promise<string> {
  return render('kubectl', ['kustomize', folder])
}

export function template(values: object, name = NAMESPACE): Promise<string> {
  const args = ['template', name, CHART, '--namespace', NAMESPACE, '--values', '-']
  return render('helm', args, { input: JSON.stringify(values) })
}

/** The blocks of YAML on a page, by what is in them. */
export function blockWith(text: string, where = page): string {
  const blocks = [...where.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, block]) => block as string)
  const found = blocks.filter((block) => block.includes(text))
  assert.equal(found.length, 1, text)
  return found[0] as string
}

const TOKENS = 'flux-resourceset-tokens'
export const DATABASE = 'flux-resourceset-db-app'
const AUTHORITY = 'flux-resourceset-db-ca'
export const UPSTREAM = 'flux-resourceset-upstream'
const TLS = 'flux-resourceset-tls'
const CLIENT_CA = 'flux-resourceset-client-ca'

type Cleaned = { after(clean: () => void): void }

/** A kustomization beside a checkout, as the docs have it; `more` is put under the keys that it has already, too. */
async function renderBeside(t: Cleaned, kustomization: string, more = ''): Promise<string> {
  const folder = temporaryFolder(t)
  const own = join(folder, 'fleet')
  cpSync(join(ROOT, 'deploy/kustomize'), join(folder, 'flux-resourceset/deploy/kustomize'), {
    recursive: true,
  })
  mkdirSync(own)
  const [parsed, added] = [parse(kustomization), more === '' ? {} : parse(more)]
  for (const [key, list] of Object.entries<Any[]>(added)) parsed[key] = [...(parsed[key] ?? []), ...list]
  writeFileSync(join(own, 'kustomization.yaml'), stringify(parsed))
  writeFileSync(join(own, 'network_policy.yaml'), networkPolicy)
  writeFileSync(join(own, 'access.yaml'), 'certificates: []\n')
  return kustomize(own)
}

const renderPage = (t: Cleaned, where = page): Promise<string> =>
  renderBeside(t, blockWith('kind: Kustomization', where))

/** The snippets of docs/high-availability.md on top of the overlay, and components by their names. */
const components = (...names: string[]): string =>
  stringify({ components: names.map((name) => `../flux-resourceset/deploy/kustomize/components/${name}`) })
const certificates = components('tls', 'client-certificates')
const managed = [
  'namespace: flux-resourceset',
  'resources: [../flux-resourceset/deploy/kustomize/overlays/postgres-ha]',
  components('tls', 'service-monitor'),
  blockWith('rds.example.com', highAvailability),
  blockWith('flux-resourceset-database', highAvailability),
].join('\n')

type Render = (t: Cleaned) => Promise<string>
export const CASES: Record<string, { readonly secrets: readonly string[]; readonly yaml: Render }> = {
  'the overlay sqlite-single': { secrets: [TOKENS], yaml: () => kustomize(join(OVERLAYS, 'sqlite-single')) },
  'the overlay postgres-ha': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => kustomize(join(OVERLAYS, 'postgres-ha')),
  },
  'the overlay mirror': { secrets: [TOKENS, UPSTREAM], yaml: () => kustomize(join(OVERLAYS, 'mirror')) },
  'the kustomization of docs/deploying.md': { secrets: [TOKENS], yaml: (t) => renderPage(t) },
  'the kustomization of docs/mirrors.md': {
    secrets: [TOKENS, UPSTREAM],
    yaml: (t) => renderPage(t, mirrors),
  },
  'the chart with the values of docs/high-availability.md': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => template(parse(blockWith('existingSecret:', highAvailability))),
  },
  'the chart on SQLite': { secrets: [TOKENS], yaml: () => template(required) },
  'the chart in memory': { secrets: [TOKENS], yaml: () => template({ ...required, store: 'memory' }) },
  'the chart on PostgreSQL': { secrets: [TOKENS, DATABASE, AUTHORITY], yaml: () => template(onPostgres) },
  'the chart on PostgreSQL with every value for it': {
    secrets: [TOKENS, DATABASE, AUTHORITY, 'flux-resourceset-db-reader'],
    yaml: () => template(toTheFull, 'fleet'),
  },
  'the chart with three writers and no readers': {
    secrets: [TOKENS, DATABASE, AUTHORITY],
    yaml: () => template({ ...onPostgres, crud: { replicas: 3 }, readOnly: { replicas: 0 } }, 'fleet'),
  },
  'the chart with TLS': {
    secrets: [TOKENS, TLS],
    yaml: () => template({ ...required, tls: { existingSecret: TLS } }, 'fleet'),
  },
  'the chart with client certificates and OIDC': {
    secrets: [TOKENS, DATABASE, AUTHORITY, TLS, CLIENT_CA],
    yaml: () => template(secured),
  },
  'the chart with the values of docs/tls-on-kubernetes.md': {
    secrets: [TOKENS, TLS, CLIENT_CA],
    yaml: () => template(parse(blockWith('existingSecret:', tlsPage))),
  },
  'the chart with OIDC as in docs/deploying.md': {
    secrets: [TOKENS],
    yaml: () => template({ ...required, ...parse(blockWith('issuer: https://login.example.com')) }),
  },
  'the kustomization of docs/tls-on-kubernetes.md': {
    secrets: [TOKENS, TLS, CLIENT_CA],
    yaml: (t) => renderPage(t, tlsPage),
  },
  'the kustomization of docs/deploying.md with OIDC': {
    secrets: [TOKENS],
    yaml: (t) => renderBeside(t, blockWith('kind: Kustomization'), blockWith('components/oidc')),
  },
  'the overlay postgres-ha with a managed database, TLS and OIDC': {
    secrets: [TOKENS, DATABASE, AUTHORITY, TLS],
    yaml: (t) => renderBeside(t, managed, blockWith('components/oidc')),
  },
  'the overlay mirror with TLS and client certificates': {
    secrets: [TOKENS, UPSTREAM, TLS, CLIENT_CA],
    yaml: (t) => renderBeside(t, blockWith('kind: Kustomization', mirrors), certificates),
  },
  'the chart with every value': { secrets: [], yaml: () => template(everything, 'fleet') },
  'the chart with the values of docs/deploying.md': {
    secrets: [TOKENS],
    yaml: () => template(parse(blockWith('existingSecret:'))),
  },
}

export function ofKind({ objects }: Rendered, kind: string): Any[] {
  return objects.filter((object) => object.kind === kind)
}

/** Every pod there will be: its labels and its spec, and the Deployment that it is of. */
export function podsOf(rendered: Rendered): { labels: Any; spec: Any; deployment?: Any }[] {
  return [
    ...ofKind(rendered, 'Deployment').map((deployment) => ({
      labels: deployment.spec.template.metadata.labels,
      spec: deployment.spec.template.spec,
      deployment,
    })),
    ...ofKind(rendered, 'Pod').map(({ metadata, spec }) => ({ labels: metadata.labels, spec })),
  ]
}

export function deployed(rendered: Rendered) {
  return podsOf(rendered).filter(({ deployment }) => deployment)
}

export function matches(labels: Any, { matchLabels = {}, matchExpressions = [] }: Any): boolean {
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every(({ key, operator, values }: Any) => {
      assert.equal(operator, 'In')
      return values.includes(labels[key])
    })
  )
}

/** The environment of a container, with a word for what comes from a Secret. */
export function environmentOf(rendered: Rendered, { env = [], envFrom = [] }: Any): Record<string, string> {
  const maps = envFrom.map(({ configMapRef }: Any) =>
    ofKind(rendered, 'ConfigMap').find(({ metadata }) => metadata.name === configMapRef.name),
  )
  return {
    ...Object.assign({}, ...maps.map(({ data }: Any) => data)),
    ...Object.fromEntries(
      env.map(({ name, value, valueFrom }: Any) => [name, value ?? valueFrom.secretKeyRef.name]),
    ),
  }
}

/** The Secrets of a volume, with what is taken of each. */
export function secretsOf({ secret, projected }: Any): { name: string; items: Any[] }[] {
  const all = [...(secret ? [secret] : []), ...(projected?.sources ?? []).map((source: Any) => source.secret)]
  return all.map(({ name, secretName, items }) => ({ name: name ?? secretName, items }))
}

/** What the service makes of a container's environment. */
export function configOf(rendered: Rendered, container: Any): Config {
  const parsed = parseConfig(environmentOf(rendered, container))
  assert.ok(parsed.ok, JSON.stringify(parsed))
  return parsed.config
}

/** The ports that a container's process listens on: the API's, and that of probes and metrics. */
export function listenersOf(rendered: Rendered, container: Any): { api: number; admin: number | undefined } {
  const { listen, adminListen } = configOf(rendered, container)
  assert.ok('port' in listen)
  return { api: listen.port, admin: adminListen && 'port' in adminListen ? adminListen.port : undefined }
}

/** The number of a port that a probe, a Service or a policy names; undefined when the container has none such. */
export function portOf({ ports = [] }: Any, port: string | number): number | undefined {
  return ports.find(({ name, containerPort }: Any) => name === port || containerPort === port)?.containerPort
}
