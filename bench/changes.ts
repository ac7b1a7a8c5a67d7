// What changes of a large fleet cost, and what polls feel of them: previews, batches, time travel, verifying.
import { setTimeout as sleep } from 'node:timers/promises'
import { clusterId } from './fleet.ts'
import { median, percentile, pollDuring } from './load.ts'
import { type Target, TOKEN } from './server-process.ts'

export const RATE = 500
const REVISIONS_BACK = 1000
const MIN_MS = 3000
/** Nobody asks without a pause. */
const PAUSE_MS = 50

interface Row {
  readonly name: string
  readonly times: number[]
  readonly polls: number[]
}

/** Each kind of work several times, with polls at a steady rate; before and after it the same polls alone. */
export async function measureChanges(
  target: Target,
  size: number,
  paths: readonly string[],
): Promise<string[][]> {
  const api = async (method: string, path: string, body?: unknown): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://127.0.0.1:${target.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path}: ${text.slice(0, 500)}`)
    return JSON.parse(text)
  }
  const load = { port: target.port, paths, token: TOKEN, rate: RATE }
  const idle = (): Promise<number[]> =>
    pollDuring(load, () => new Promise((resolve) => setTimeout(resolve, MIN_MS)))
  const rows: Row[] = []
  /** Quick work is repeated until there are polls enough to tell their p99. */
  const measure = async (
    name: string,
    rounds: number,
    run: (round: number) => Promise<unknown>,
  ): Promise<void> => {
    const times: number[] = []
    const polls = await pollDuring(load, async () => {
      const begun = performance.now()
      for (let round = 0; round < rounds || performance.now() < begun + MIN_MS; round++) {
        const started = performance.now()
        await run(round)
        times.push(performance.now() - started)
        await sleep(PAUSE_MS)
      }
    })
    rows.push({ name, times, polls })
  }

  const { revision: start } = (await api('GET', '/ready')) as { revision: number }
  for (let n = 0; n < REVISIONS_BACK; n++) {
    await api('PATCH', `/clusters/${clusterId((n * 7) % size)}`, {
      labels: { touched: String(n) },
    })
  }
  const quiet = await idle()
  await measure('preview of a catalog edit', 10, async (round) => {
    const preview = await api('PATCH', '/platform_components/component-7?dry_run=true', {
      oci_tag: `v9.${round}`,
    })
    if ((preview.impact as { clusters: number }).clusters === 0) throw new Error('the edit reaches nobody')
  })
  const then = `at=${start + 1}`
  const quarter = Math.ceil(size / 4).toLocaleString('en')
  const one = clusterId(Math.min(7, size - 1))
  await measure('one cluster as it was 1,000 revisions ago', 10, () =>
    api('GET', `/clusters/${one}/inputs/platform-components?${then}`),
  )
  await measure('a list as it was 1,000 revisions ago', 10, () => api('GET', `/clusters?limit=100&${then}`))
  await measure('explain the inputs of a cluster', 10, () =>
    api('GET', `/clusters/${one}/inputs/platform-components?explain=true`),
  )
  const batch = (operation: object) =>
    api('POST', '/batch', { operations: [operation], confirm: ['removals'] })
  await measure(`batch: labels of ${quarter} clusters`, 3, (round) =>
    batch({
      op: 'patch',
      type: 'clusters',
      selector: 'environment=dev',
      patch: { labels: { ring: String(round) } },
    }),
  )
  await measure(`batch: a component assigned to ${quarter}`, 3, (round) =>
    batch({
      op: 'assign',
      type: 'platform_components',
      ref: { id: 'component-1', oci_tag: `v3.${round}` },
      selector: 'environment=qa',
    }),
  )
  await measure('a list as it was before these batches', 3, () => api('GET', `/clusters?limit=100&${then}`))
  await measure('revert the last batch', 1, async () => {
    const { revision } = (await api('GET', '/ready')) as { revision: number }
    await api('POST', `/revisions/${revision}/revert`, { confirm: ['removals'] })
  })
  await measure('verify the whole log', 1, () => api('GET', '/revisions/verify'))
  quiet.push(...(await idle()))
  const base = percentile(quiet, 0.99)
  return [
    ['nothing else', '', '', base.toFixed(2), '1.0×', Math.max(...quiet).toFixed(0)],
    ...rows.map(({ name, times, polls }) => [
      name,
      median(times).toFixed(0),
      Math.max(...times).toFixed(0),
      percentile(polls, 0.99).toFixed(2),
      `${(percentile(polls, 0.99) / base).toFixed(1)}×`,
      Math.max(...polls).toFixed(0),
    ]),
  ]
}

export const CHANGE_COLUMNS = ['work', 'median ms', 'worst ms', "polls' p99 ms", 'of idle', 'worst poll ms']
