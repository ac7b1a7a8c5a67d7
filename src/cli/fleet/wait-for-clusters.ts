// Waits until clusters have come as far as is wanted, one of them fails, or the time is over.

import { howLong } from '../../base/relative-time.ts'
import { count, firstOf } from '../../base/sentences.ts'
import { PROGRAM } from '../cli-command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Goal } from '../input/goals.ts'
import { startProgress } from '../output/progress.ts'
import { hasCursor } from '../output/terminal.ts'
import type { Session } from '../session.ts'
import { lookUntil } from './look-until.ts'
import { type Group, isAbsent, type PendingCluster, revisionGroup, type Standing } from './standing.ts'

interface Options {
  readonly goal: Goal
  /** Whether clusters of which nothing is heard are set aside. */
  readonly ignoreOffline?: boolean
}

/** How long clusters are waited for, unless --timeout says otherwise. */
const WAIT_MS = 600_000
/** How many clusters are named. */
const NAMED = 10

/** Waits for the clusters of a revision that a write has made; says on stderr how it ended. */
export async function waitForRevision(session: Session, revision: number, goal: Goal): Promise<void> {
  const group = revisionGroup(session, revision, { isNew: true })
  session.note(describeReached(group, await waitFor(session, group, { goal }), { goal }))
}

/** Returns how far they have come once all are there. Throws when one has failed, when time is over, and at Ctrl-C. */
export async function waitFor(session: Session, group: Group, options: Options): Promise<Standing> {
  const { waitMs = WAIT_MS } = session.settings
  const progress = showProgress(session, group, options)
  try {
    return await lookUntil(session, {
      name: group.name,
      waitMs,
      read: () => group.read(options.goal),
      async isDone(seen) {
        progress.show(seen)
        if (seen.failed > 0) throw await failure(group, options, seen)
        return seen.reached >= seen.total - (options.ignoreOffline ? seen.offline : 0)
      },
      timedOut: (last) => timedOut(group, options, waitMs, last),
    })
  } finally {
    progress.end()
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
