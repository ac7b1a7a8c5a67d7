// What goes wrong in a simulated fleet, by chance that can be repeated: components, whole clusters, connections, events.
import type { Random } from '../../test/seeded-random.ts'
import type { Send } from './exchange.ts'
import type { Behaviour, PlannedFault } from './simulated-cluster.ts'

/** When the faults of a run happen, and what they can hit. */
export interface FaultTimes {
  readonly startsAt: number
  readonly endsAt: number
  readonly endpoints: readonly string[]
  /** The component that fails; the first one unless named. */
  readonly component?: string
}

/** Shares of clusters, each with another kind of trouble; the rest has none. */
const TROUBLES: readonly (readonly [share: number, plan: (at: At, hit: Hit) => PlannedFault[]])[] = [
  // Fails and stays so.
  [0.02, (at, { broken }) => [{ at: at(0.3), fault: { kind: 'fail', ...broken } }]],
  // Fails and recovers, again and again.
  [
    0.02,
    (at, { broken }) =>
      [0.2, 0.4, 0.6, 0.8].map((part, i) => ({
        at: at(part),
        fault: { kind: i % 2 === 0 ? 'fail' : 'recover', ...broken },
      })),
  ],
  [0.01, (at) => [{ at: at(0.4), fault: { kind: 'away' } }]],
  [
    0.02,
    (at) => [
      { at: at(0.3), fault: { kind: 'away' } },
      { at: at(0.7), fault: { kind: 'back' } },
    ],
  ],
  [0.02, (at) => [{ at: at(0.5), fault: { kind: 'restart' } }]],
  [
    0.01,
    (at, { endpoint }) => [
      { at: at(0), fault: { kind: 'reject', endpoint } },
      { at: at(0.6), fault: { kind: 'accept', endpoint } },
    ],
  ],
]

/** A part of the run as a moment. */
type At = (part: number) => number

/** What trouble is about. */
interface Hit {
  readonly endpoint: string
  readonly broken: { readonly component?: string }
}

/** Events that get lost before anyone sends them. */
const LOST_EVENTS = 0.1

/** The behaviour of one cluster, with or without trouble. */
export function planFaults(random: Random, times: FaultTimes): Partial<Behaviour> {
  const { startsAt, endsAt, endpoints, component } = times
  const broken = component === undefined ? {} : { component }
  const losesEvent = (): boolean => random.next() < LOST_EVENTS
  let share = random.next()
  for (const [size, plan] of TROUBLES) {
    share -= size
    if (share < 0) {
      const at: At = (part) => startsAt + (endsAt - startsAt) * part
      return { losesEvent, plan: plan(at, { endpoint: random.pick(endpoints), broken }) }
    }
  }
  return { losesEvent }
}

/** Drops a share of the connections before they reach the service. */
export function dropSome(send: Send, random: Random, share: number): Send {
  return async (request) =>
    random.next() < share ? { kind: 'dropped', reason: 'on purpose', isInjected: true } : send(request)
}
