// Texts that try to be HTML in every request that takes one and is of no document: found by the description of the API.
import assert from 'node:assert/strict'
import type { Json, JsonObject } from '../../src/base/json.ts'
import type { SchemaObject } from '../../src/base/json-schema.ts'
import { mergePatch } from '../../src/base/merge-patch.ts'
import type { Answer, TestService } from '../service.ts'
import { ATTACK } from './console-fleet.ts'

/** Texts end up in links as well. */
export const ATTACKS = [ATTACK, 'javascript:alert(3)', '"><svg onload=alert(4)>']
/** What every request may carry beside its body. */
const HEADERS = {
  'x-change-message': ATTACK,
  'x-request-id': ATTACK,
  'user-agent': `flux-operator/${ATTACK}`,
}

/** Each place of a value that may hold a text, filled with one, as a merge patch. */
export function* attacksOn(
  { type, properties, additionalProperties, items, enum: words }: SchemaObject,
  text: string,
): Generator<Json> {
  const types = [type].flat()
  if (types.includes('string') && !words) yield text as Json
  for (const [name, schema] of Object.entries((properties ?? {}) as Record<string, SchemaObject>))
    for (const value of attacksOn(schema, text)) yield { [name]: value }
  if (typeof additionalProperties === 'object') {
    yield { [text]: text }
    for (const value of attacksOn(additionalProperties as SchemaObject, text)) yield { attacked: value }
  }
  if (items) for (const value of attacksOn(items as SchemaObject, text)) yield [value]
}

/** Nothing may break the service, and what is refused is refused for what it is. */
export async function send(service: TestService, method: string, path: string, body: Json): Promise<Answer> {
  const answer = await service.call(method, path, { body, headers: HEADERS })
  assert.ok(answer.status < 500, `${method} ${path} ${JSON.stringify(body)}: ${answer.text}`)
  return answer
}

interface Requests {
  readonly cluster: string
  readonly dns: string
  readonly rollout: string
}

/** By the operation of the description: its path, and a body that is taken. */
function requestsOn({ cluster, dns, rollout }: Requests): Readonly<Record<string, [string, JsonObject]>> {
  const tag = (oci_tag: string): Json => [
    { op: 'patch', type: 'platform_components', id: 'cert-manager', patch: { oci_tag } },
  ]
  const object = { kind: 'HelmRelease', name: 'traefik', namespace: 'flux-system' }
  const event = { involvedObject: object, severity: 'error', reason: 'Failed', message: 'it fails' }
  const evidence = [
    ['polls', `${cluster} namespaces`, ['', 1, -1, 1, 1000, ATTACK, ATTACK]],
    ['refusals', cluster, [403, ATTACK]],
    ['failures', `${cluster} HelmRelease/${ATTACK}`, [-1, '', ATTACK, ATTACK, { component: ATTACK }]],
  ].map(([kind, key, value]) => ({ kind, key, value, age_ms: 0 })) as Json
  const act = (what: string, body: JsonObject = {}): [string, JsonObject] => [
    `/rollouts/${rollout}/${what}`,
    body,
  ]
  return {
    create_token: ['/tokens', { name: 'one', role: 'editor', selector: `id=${cluster}` }],
    issue_tokens: ['/tokens/issue', { clusters: ['qa-eu-01'] }],
    rotate_token: ['/tokens/tok-none/rotate', {}],
    hold_cluster: [`/holds/${cluster}`, { reason: ATTACK }],
    send_event: [`${dns}/events`, { ...event, timestamp: new Date().toISOString(), metadata: {} }],
    forward_reports: ['/reports', { reports: evidence }],
    batch: ['/batch', { operations: tag(ATTACK), message: ATTACK }],
    approve_rollout: act('approve', { remark: ATTACK }),
    check_rollout: act('check', { wave: 'all', name: 'outside', ok: false, remark: ATTACK }),
    amend_rollout: act('amend', { operations: tag(`${ATTACK} again`), message: ATTACK }),
    pause_rollout: act('pause', { remark: ATTACK }),
    resume_rollout: act('resume'),
    retry_rollout: act('retry'),
    skip_rollout: act('skip', { clusters: ['qa-eu-01'] }),
    finish_rollout: act('finish', { remark: ATTACK }),
    abort_rollout: act('abort', { remark: ATTACK }),
    revert_revision: ['/revisions/2/revert', {}],
    rollback: ['/rollback', { to_revision: 2, dry_run: true }],
  }
}

interface Described {
  readonly operationId: string
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: SchemaObject }>> }
}

/** Sends all of them; returns the operations that took none. */
export async function attackRequests(
  service: TestService,
  of: Requests,
  documents: readonly string[],
): Promise<string[]> {
  const { body: description } = await service.call('GET', '/openapi.json')
  const requests = requestsOn(of)
  const taken = new Set<string>()
  const described = Object.entries(description.paths as Record<string, Record<string, Described>>).flatMap(
    ([path, methods]) => Object.entries(methods).map(([method, each]) => ({ path, method, ...each })),
  )
  const others = described.filter(
    ({ path, requestBody }) => requestBody && !documents.includes(path.split('/')[1] ?? ''),
  )
  assert.deepEqual(others.map(({ operationId }) => operationId).sort(), Object.keys(requests).sort())
  for (const [id, [path, body]] of Object.entries(requests)) {
    const { method, requestBody } = others.find(({ operationId }) => operationId === id) as (typeof others)[0]
    const schema = resolve(description, requestBody?.content['application/json']?.schema ?? {})
    const bodies = ATTACKS.flatMap((text) => [...attacksOn(schema, text)]) as JsonObject[]
    for (const patch of [{}, ...bodies]) {
      const { status } = await send(service, method.toUpperCase(), path, mergePatch(body, patch))
      if (status < 300) taken.add(id)
    }
  }
  return Object.keys(requests).filter((id) => !taken.has(id))
}

function resolve(description: JsonObject, schema: SchemaObject): SchemaObject {
  const name = String((schema as JsonObject).$ref ?? '')
    .split('/')
    .at(-1)
  if (!name) return schema
  const { schemas } = description.components as { schemas: Record<string, SchemaObject> }
  return schemas[name] as SchemaObject
}
