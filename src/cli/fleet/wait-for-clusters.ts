// Waits until clusters have come as far as is wanted, one of them fails, or the time is over.
import { setTimeout as sleep } from 'node:timers/promises'
import { PROGRAM } from '../cli-command.ts'
import { EXIT, Failure } from '../failure.ts'
import { INTERRUPTED } from '../input/ask.ts'
import type { Goal } from '../input/goals.ts'
import { count, firstOf } from '../output/count.ts'
import { startProgress } from '../output/progress.ts'
import { howLong } from '../output/relative-time.ts'
import { hasCursor } from '../output/terminal.ts'
import { isTransient } from '../server/refusal.ts'
import type { Awaited, Session } from '../session.ts'
import { type Group, isAbsent, type PendingCluster, revisionGroup, type Standing } from './standing.ts'

interface Options {
  readonly goal: Goal
  /** Whether clusters of which nothing is heard are set aside. */
  readonly ignoreOffline?: boolean
}

const EVERY_MS = 2000
/** Reading may take this share of the time at most. */
const BUSY_SHARE = 0.2
/** How many clusters are named. */
const NAMED = 10

/** Waits for the revisions that a write has made; says on stderr how it ended. */
export async function waitForWrite(session: Session, awaited: readonly Awaited[]): Promise<void> {
  for (const { revision, goal } of awaited) {
    const group = revisionGroup(session, revision, { isNew: true })
    session.note(describeReached(group, await waitFor(session, group, { goal }), { goal }))
  }
}

/** Returns how far they have come once all are there. Throws when one has failed, when time is over, and at Ctrl-C. */
export async function waitFor(session: Session, group: Group, options: Options): Promise<Standing> {
  const { waitMs } = session.settings
  const { promise: ended, reject } = Promise.withResolvers<never>()
  // Nobody may be waiting for it when it ends.
  ended.catch(() => {})
  let last: Standing | undefined
  const timer = setTimeout(() => reject(timedOut(group, options, waitMs, last)), waitMs)
  const interrupt = (): void =>
    reject(new Failure(INTERRUPTED, `no longer waiting for ${group.name}: what was changed stays so`))
  process.once('SIGINT', interrupt)
  const progress = showProgress(session, group, options)
  try {
    for (;;) {
      const begun = Date.now()
      last = (await Promise.race([readPatiently(session, group, options.goal), ended])) ?? last
      if (last) {
        progress.show(last)
        if (last.failed > 0) throw await failure(group, options, last)
        if (last.reached >= last.total - (options.ignoreOffline ? last.offline : 0)) return last
      }
      const pause = Math.max(EVERY_MS, (Date.now() - begun) / BUSY_SHARE)
      await Promise.race([sleep(pause, undefined, { ref: false }), ended])
    }
  } finally {
    clearTimeout(timer)
    process.off('SIGINT', interrupt)
    progress.end()
  }
}

/** Returns undefined where the server does not respond for a moment: it may be restarting. */
async function readPatiently(session: Session, group: Group, goal: Goal): Promise<Standing | undefined> {
  try {
    return await group.read(goal)
  } catch (error) {
    if (!isTransient(error)) throw error
    session.note(error.message)
    return undefined
  }
}

export function describeReached(
  { name }: Group,
  { total, reached, pending }: Standing,
  { goal }: Options,
): string {
  if (total === 0) return `${name}: no cluster receives anything else`
  const head = `${name}: ${goal} ${ofClusters(reached, total)}`
  const aside = total - reached
  return aside === 0
    ? head
    : `${head}; ${aside} offline set aside: ${namesOf(pending.filter(isAbsent), aside)}`
}

function ofClusters(reached: number, total: number): string {
  return reached === total ? `on ${count(total, 'cluster')}` : `on ${reached} of ${count(total, 'cluster')}`
}

/** The first names; `all` is how many there are, also beyond those that are known. */
function namesOf(clusters: readonly PendingCluster[], all: number): string {
  const names = clusters.slice(0, NAMED).map(({ cluster }) => cluster)
  return firstOf([...names, ...Array.from({ length: all - names.length }, () => '')], names.length)
}

function timedOut(group: Group, { goal }: Options, waitMs: number, last: Standing | undefined): Failure {
  const message = last
    ? `${group.name}: ${goal} ${ofClusters(last.reached, last.total)} after ${howLong(waitMs)}`
    : `${group.name}: the server has not said how far it is, for ${howLong(waitMs)}`
  const pending = last?.pending.slice(0, NAMED) ?? []
  const more = last ? last.total - last.reached - pending.length : 0
  const details = [
    ...pending.map(
      ({ cluster, contact, delivery, health }) =>
        `${cluster}: contact ${contact}, delivery ${delivery}, health ${health}`,
    ),
    ...(more > 0 ? [`… and ${count(more, 'other')}`] : []),
  ]
  const hint =
    last && last.offline > 0 ? 'wait --ignore-offline sets those aside that are not heard of' : undefined
  return new Failure(EXIT.timeout, message, { details, hint })
}

async function failure(
  group: Group,
  { goal }: Options,
  { failed, reached, total }: Standing,
): Promise<Failure> {
  const causes = await group.explainFailures()
  const message = `${group.name}: ${count(failed, 'cluster')} failed, and it is ${goal} ${ofClusters(reached, total)}`
  const more = causes.length - NAMED
  return new Failure(EXIT.unmet, message, {
    details: [...causes.slice(0, NAMED), ...(more > 0 ? [`… and ${count(more, 'other')}`] : [])],
    hint: `${PROGRAM} attention tells what to do next`,
  })
}

interface Shown {
  show(standing: Standing): void
  end(): void
}

/** A bar on a terminal; elsewhere a line whenever something has changed. */
function showProgress(session: Session, { name }: Group, { goal }: Options): Shown {
  const bar = startProgress(session, `${name}: ${goal}`)
  const isDrawn = hasCursor(session.terminal, session.terminal.stderr)
  let last = ''
  return {
    show({ reached, total, offline }) {
      const more = offline > 0 ? `, ${offline} offline` : ''
      bar.show(reached, total, more)
      const line = `${name}: ${goal} on ${reached} of ${count(total, 'cluster')}${more}`
      if (!isDrawn && line !== last && reached < total) session.note(line)
      last = line
    },
    end: bar.end,
  }
}
