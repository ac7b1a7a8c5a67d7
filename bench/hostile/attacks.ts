// What somebody with a credential of each role sends to knock the service over: the most expensive that it allows.
import { clusterDns, clusterId } from '../fleet.ts'
import {
  batch,
  bytes,
  copies,
  get,
  half,
  JSON_PATCH,
  keys,
  list,
  MB,
  moves,
  type Request,
  send,
  write,
} from './requests.ts'

export const ATTACKERS = ['anonymous', 'cluster', 'poller', 'viewer', 'editor'] as const
export type Attacker = (typeof ATTACKERS)[number]

export interface Attack {
  readonly name: string
  /** Whom it is measured alone for; those of `also` send it in their mix. */
  readonly by: Attacker
  readonly also?: readonly Attacker[]
  readonly connections: number
  /**
   * ask: again and again, each time the last answer is there. hold: sends and reads nothing. leave: hangs up in the
   * middle of the work. drip: a byte a second.
   */
  readonly use: 'ask' | 'hold' | 'leave' | 'drip'
  /** Between an answer and the next request. */
  readonly pauseMs?: number
  /** The address it comes from. */
  readonly from?: string
  readonly request: Request
}

/** A cluster of the environment dev: inside the scope of the editor. */
const OWN = clusterId(0)
const POLL = `/api/v2/flux/clusters/${clusterDns(0)}/platform-components`
const POLL_LIST = '/api/v2/flux/clusters'
const FAR = 'min_revision=999999999'
export const SCOPE = 'environment=dev'

/** Clusters of the environment dev, every fourth of the fleet. */
function inScope(n: number): string {
  return clusterId((n % 250) * 4)
}

const PATCH_ALL = '{"op":"patch","type":"clusters","selector":"id","patch":{}}'
const PREVIEW = `PATCH /clusters/${OWN}?dry_run=true`
const ROLLBACK = send('POST /rollback', () => '{"dry_run":true,"to_revision":1}')
const LABELS = (n: number) => ({ labels: { touched: `${n}` } })
const DIGITS = '1'.repeat(15_500)
const viewer = { by: 'viewer', also: ['editor'], use: 'ask' } as const

export const ATTACKS: readonly Attack[] = [
  {
    name: 'bad paths',
    by: 'anonymous',
    use: 'ask',
    connections: 100,
    request: get(`/${'%2e%2e/x'.repeat(1000)}`),
  },
  { name: '/openapi.json', by: 'anonymous', use: 'ask', connections: 100, request: get('/openapi.json') },
  {
    name: '/docs',
    by: 'anonymous',
    use: 'ask',
    connections: 100,
    request: get('/docs/static/swagger-ui-bundle.js'),
  },
  { name: '/metrics', by: 'anonymous', use: 'ask', connections: 100, request: get('/metrics') },
  {
    name: 'unread /openapi.json',
    by: 'anonymous',
    use: 'hold',
    connections: 1000,
    request: get('/openapi.json', '', 10),
  },
  // More than MAX_CONNECTIONS.
  {
    name: 'idle connections',
    by: 'anonymous',
    use: 'hold',
    connections: 10_500,
    request: get('/health'),
  },
  { name: 'polls', by: 'cluster', use: 'ask', connections: 100, request: get(POLL) },
  {
    name: 'polls, a connection each',
    by: 'cluster',
    use: 'ask',
    connections: 100,
    request: get(POLL, 'Connection: close\r\n'),
  },
  {
    name: '16 kB of Accept-Encoding',
    by: 'cluster',
    use: 'ask',
    connections: 100,
    request: get(POLL, `Accept-Encoding: gzip;q=0.${DIGITS}x\r\n`),
  },
  {
    name: 'unread polls, pipelined',
    by: 'cluster',
    use: 'hold',
    connections: 1000,
    request: get(POLL, '', 600),
  },
  {
    name: 'a revision still to come',
    by: 'cluster',
    use: 'ask',
    connections: 510,
    request: get(`/whoami?${FAR}`),
  },
  { name: 'lists of polls', by: 'poller', use: 'ask', connections: 20, request: get(POLL_LIST) },
  { name: 'unread lists of polls', by: 'poller', use: 'hold', connections: 1000, request: get(POLL_LIST) },
  {
    name: 'lists of a revision still to come',
    by: 'poller',
    use: 'ask',
    connections: 1000,
    request: get(`${POLL_LIST}?${FAR}`),
  },
  { ...viewer, name: 'verify', connections: 4, request: get('/revisions/verify') },
  { ...viewer, name: 'lists of 5,000', connections: 8, request: get('/clusters?limit=5000') },
  { ...viewer, name: 'lists of the past', connections: 8, request: get('/clusters?limit=5000&at=1') },
  {
    ...viewer,
    name: 'list, selector of 5,000 terms',
    connections: 8,
    request: get(`/clusters?limit=1&selector=${list('id', 15_000)}`),
  },
  { ...viewer, name: 'preview: rollback', connections: 20, request: ROLLBACK },
  {
    ...viewer,
    name: 'preview: 200 selectors',
    connections: 4,
    request: batch(() => Array(200).fill(PATCH_ALL).join()),
  },
  {
    ...viewer,
    name: 'preview: 100,000 selectors',
    connections: 4,
    request: batch(() => Array(100_000).fill(PATCH_ALL).join()),
  },
  { ...viewer, name: 'batch of ones, 4 MB', connections: 2, request: batch(() => list('1', 4 * MB)) },
  { ...viewer, name: 'batch of ones, 31 MB', connections: 2, request: batch(() => list('1', 31 * MB)) },
  { ...viewer, name: 'batch of {}, 31 MB', connections: 2, request: batch(() => list('{}', 31 * MB)) },
  {
    ...viewer,
    name: 'batch of unknown keys, 4.7 MB',
    connections: 2,
    request: send('POST /batch', () => `{"dry_run":true,"operations":[${PATCH_ALL}],${keys(330_000, 'k')}}`),
  },
  {
    ...viewer,
    name: 'batch, selector of 4 MB',
    connections: 2,
    request: batch(() => PATCH_ALL.replace('"id"', `"${list('id', 4 * MB)}"`)),
  },
  {
    ...viewer,
    name: 'batch, clusters that are ones, 4 MB',
    connections: 2,
    request: batch(() => PATCH_ALL.replace('"selector":"id"', `"clusters":[${list('1', 4 * MB)}]`)),
  },
  {
    ...viewer,
    name: 'preview: 250,000 wrong labels',
    connections: 2,
    request: send(PREVIEW, () => `{"labels":{${keys(250_000, '!')}}}`),
  },
  {
    ...viewer,
    name: 'JSON Patch: 15 copies',
    connections: 2,
    request: send(PREVIEW, () => copies(15), JSON_PATCH),
  },
  {
    ...viewer,
    name: 'JSON Patch: 26 copies',
    connections: 1,
    request: send(PREVIEW, () => copies(26), JSON_PATCH),
  },
  { ...viewer, name: 'JSON Patch: moves of 1 MB', connections: 1, request: send(PREVIEW, moves, JSON_PATCH) },
  { ...viewer, name: 'half-sent POSTs', use: 'hold', connections: 300, request: half },
  {
    ...viewer,
    name: 'unread lists of 5,000',
    use: 'hold',
    connections: 520,
    request: get('/clusters?limit=5000'),
  },
  { ...viewer, name: 'streams from revision 1', connections: 50, request: get('/watch?since=1') },
  { ...viewer, name: 'previews, hung up', use: 'leave', connections: 50, request: ROLLBACK },
  {
    ...viewer,
    name: 'bundle, slashes in its URL',
    connections: 4,
    request: get(`/clusters/${OWN}/bootstrap?api_url=http://a${'/'.repeat(15_000)}x`),
  },
  {
    name: 'writes of one cluster',
    by: 'editor',
    use: 'ask',
    connections: 100,
    request: write((n) => `PATCH /clusters/${inScope(n)}`, LABELS),
  },
  {
    name: 'batches of the whole scope',
    by: 'editor',
    use: 'ask',
    connections: 4,
    request: write(
      () => 'POST /batch',
      (n) => ({ operations: [{ op: 'patch', type: 'clusters', selector: SCOPE, patch: LABELS(n) }] }),
    ),
  },
  {
    name: 'batches of 10,000 operations',
    by: 'editor',
    use: 'ask',
    connections: 4,
    request: write(
      () => 'POST /batch',
      (n) => ({
        operations: Array.from({ length: 10_000 }, (_, i) => ({
          op: 'patch',
          type: 'clusters',
          id: inScope(i),
          patch: LABELS(n + i),
        })),
      }),
    ),
  },
]

/** What goes on beside every attack. */
export const NUISANCES: readonly Attack[] = [
  {
    name: 'slow clients',
    by: 'anonymous',
    use: 'drip',
    connections: 500,
    from: '127.0.0.3',
    request: () => () => Buffer.from('GET / HTTP/1.1\r\nHost: x\r\nX-Slow: '),
  },
  {
    name: 'bad logins',
    by: 'anonymous',
    use: 'ask',
    connections: 100,
    pauseMs: 1000,
    from: '127.0.0.4',
    request: () => (n) => bytes(`guess-${process.pid}-${n}`, `GET ${POLL}`, 'Connection: close\r\n'),
  },
]

/** Of a role, in the order of the table: alone those that are its own, mixed those that it may send as well. */
export function attacksOf(attacker: Attacker): { alone: readonly Attack[]; mixed: readonly Attack[] } {
  return {
    alone: ATTACKS.filter(({ by }) => by === attacker),
    mixed: ATTACKS.filter(({ by, also }) => by === attacker || also?.includes(attacker)),
  }
}
