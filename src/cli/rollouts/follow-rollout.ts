// Follows a rollout to its end: finished is a success; aborted, or paused by itself, is none.
import type { ShownRollout } from '../../api/rollout-schema.ts'
import { howLong } from '../../base/relative-time.ts'
import { count } from '../../base/sentences.ts'
import { EXIT, Failure, type NextStep } from '../failure.ts'
import { lookUntil } from '../fleet/look-until.ts'
import { startProgress } from '../output/progress.ts'
import { hasCursor } from '../output/terminal.ts'
import type { Session } from '../session.ts'
import { readRollout } from './read-rollouts.ts'
import { currentWave, placeOf, sum } from './rollout-table.ts'

/** Returns it once it has finished; `show` is called with every look at it. Without --timeout, as long as it takes. */
export function followRollout(
  session: Session,
  id: string,
  show: (rollout: ShownRollout) => void | Promise<void>,
): Promise<ShownRollout> {
  const { waitMs } = session.settings
  return lookUntil(session, {
    name: `rollout ${id}`,
    waitMs,
    read: () => readRollout(session, id),
    async isDone(rollout) {
      await show(rollout)
      const failure = failureOf(rollout)
      if (failure) throw failure
      return rollout.state === 'finished'
    },
    timedOut: (last) => timedOut(id, last, waitMs ?? 0),
  })
}

/** What happens to it when nobody looks: the failure to end with, where nothing goes on by itself. */
function failureOf(rollout: ShownRollout): Failure | undefined {
  const { id, state, waiting_for } = rollout
  if (state === 'aborted') {
    const { by = 'somebody', remark } = lastEvent(rollout, 'aborted') ?? {}
    const why = remark === undefined ? '' : `: ${remark}`
    return new Failure(EXIT.unmet, `rollout ${id} was aborted by ${by}${why}`)
  }
  if (state !== 'paused' || !isPausedByItself(rollout)) return undefined
  const hint = 'look at it, then let it go on or take it back:'
  const message = `rollout ${id} has paused: ${waiting_for ?? 'it does not say why'}`
  return new Failure(EXIT.unmet, message, { hint, steps: waysOn(rollout) })
}

/** A pause by a person is expected to end; one by the rollout itself waits for a person. */
function isPausedByItself(rollout: ShownRollout): boolean {
  return lastEvent(rollout, 'paused')?.by === `rollout/${rollout.id}`
}

function lastEvent({ events }: ShownRollout, what: string): ShownRollout['events'][number] | undefined {
  return events.findLast((event) => event.what === what)
}

function waysOn(rollout: ShownRollout): NextStep[] {
  const { id } = rollout
  const failing = rollout.waves.find(({ failed }) => failed > 0) ?? currentWave(rollout)
  return [
    { command: `rollout describe ${id} --members`, about: 'which clusters have come how far' },
    { command: `rollout retry ${id}`, about: 'look at failed clusters anew, and go on' },
    { command: `rollout skip ${id} --cluster ID`, about: 'leave a cluster out' },
    ...(failing
      ? [{ command: `rollout skip ${id} --wave ${failing.name}`, about: 'no longer ask for its gates' }]
      : []),
    { command: `rollout abort ${id}`, about: 'give every cluster back what it had' },
  ]
}

function timedOut(id: string, last: ShownRollout | undefined, waitMs: number): Failure {
  if (!last) {
    const message = `rollout ${id}: the server has not said how far it is, for ${howLong(waitMs)}`
    return new Failure(EXIT.timeout, message)
  }
  const { state, waiting_for } = last
  const message = `rollout ${id} is ${state} after ${howLong(waitMs)}: ${whereIs(last)}`
  return new Failure(EXIT.timeout, message, {
    details: waiting_for === null ? [] : [`waiting: ${waiting_for}`],
    hint: 'it goes on by itself:',
    steps: [{ command: `rollout watch ${id}`, about: 'follow it' }],
  })
}

/** `wave canary (1 of 3), 2 of 7 clusters have it`. */
function whereIs(rollout: ShownRollout): string {
  const place = placeOf(rollout)
  const { waves } = rollout
  const members = count(sum(waves, 'members'), 'cluster')
  return `${place === '' ? '' : `wave ${place}, `}${sum(waves, 'served')} of ${members} have it`
}

/** Waits for a rollout that a write has started; says on stderr how far it is, and how it ended. */
export async function waitForRollout(session: Session, id: string): Promise<void> {
  const bar = startProgress(session, `rollout ${id}`)
  const isDrawn = hasCursor(session.terminal, session.terminal.stderr)
  let last = ''
  try {
    const ended = await followRollout(session, id, (rollout) => {
      const line = `rollout ${id} is ${rollout.state}: ${whereIs(rollout)}`
      const place = placeOf(rollout)
      const { waves } = rollout
      bar.show(sum(waves, 'served'), sum(waves, 'members'), place === '' ? '' : `, wave ${place}`)
      if (!isDrawn && line !== last) session.note(line)
      last = line
    })
    bar.end()
    session.note(describeEnd(ended))
  } finally {
    bar.end()
  }
}

/** `rollout r42 finished after 12m: 7 clusters have it`. */
export function describeEnd({ id, started_at, ended_at = started_at, waves }: ShownRollout): string {
  const took = howLong(Date.parse(ended_at) - Date.parse(started_at))
  return `rollout ${id} finished after ${took}: ${count(sum(waves, 'members'), 'cluster')} in ${count(waves.length, 'wave')}`
}
