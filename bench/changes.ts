// What changes of a large fleet cost, and what polls feel of them: previews, batches, time travel, verifying.
import { constants, setPriority } from 'node:os'
import { median, percentile, runSteadily } from './load.ts'
import { type Target, TOKEN } from './server-process.ts'

export const RATE = 500
const REVISIONS_BACK = 1000

interface Row {
  readonly name: string
  readonly times: number[]
  readonly polls: number[]
}

/** Each kind of work several times, with polls at a steady rate; before and after it the same polls alone. */
export async function measureChanges(target: Target, paths: readonly string[]): Promise<string[][]> {
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
  goFirst()
  const load = { port: target.port, paths, token: TOKEN }
  const idle = async (): Promise<number[]> =>
    runSteadily(load, RATE, new Promise((resolve) => setTimeout(resolve, 4000)))
  const rows: Row[] = []
  const measure = async (
    name: string,
    rounds: number,
    run: (round: number) => Promise<unknown>,
  ): Promise<void> => {
    const row: Row = { name, times: [], polls: [] }
    for (let round = 0; round < rounds; round++) {
      const started = performance.now()
      const done = run(round).then(() => row.times.push(performance.now() - started))
      row.polls.push(...(await runSteadily(load, RATE, done)))
      await done
    }
    rows.push(row)
  }

  const { revision: start } = (await api('GET', '/ready')) as { revision: number }
  for (let n = 0; n < REVISIONS_BACK; n++) {
    await api('PATCH', `/clusters/cluster-${String(n * 7).padStart(6, '0')}`, {
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
  await measure('one cluster as it was 1,000 revisions ago', 10, () =>
    api('GET', `/clusters/cluster-000007/inputs/platform-components?${then}`),
  )
  await measure('a list as it was 1,000 revisions ago', 10, () => api('GET', `/clusters?limit=100&${then}`))
  await measure('explain the inputs of a cluster', 10, () =>
    api('GET', '/clusters/cluster-000007/inputs/platform-components?explain=true'),
  )
  const batch = (operation: object) =>
    api('POST', '/batch', { operations: [operation], confirm: ['removals'] })
  await measure('batch: labels of 25,000 clusters', 3, (round) =>
    batch({
      op: 'patch',
      type: 'clusters',
      selector: 'environment=dev',
      patch: { labels: { ring: String(round) } },
    }),
  )
  await measure('batch: a component assigned to 25,000', 3, (round) =>
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

/** Where all cores are busy, whoever measures would wait for one itself; where it may not, the figures include that. */
function goFirst(): void {
  try {
    setPriority(constants.priority.PRIORITY_HIGHEST)
  } catch {
    console.error('polls are measured without priority over the server')
  }
}

export const CHANGE_COLUMNS = ['work', 'median ms', 'worst ms', "polls' p99 ms", 'of idle', 'worst poll ms']
