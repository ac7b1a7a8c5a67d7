import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { builtInTypes, smallFleet } from '../../../test/service.ts'
import { type Halves, parseHex } from '../../base/digest.ts'
import type { JsonObject } from '../../base/json.ts'
import { renderInputs } from '../../domain/delivery/render-inputs.ts'
import { servedTo } from '../../domain/delivery/served-view.ts'
import { State } from '../../domain/documents/state.ts'
import type { Entry } from '../../domain/documents/view.ts'
import { deliveryOf, healthOf, rowOf } from '../../domain/status/derive-status.ts'
import type { DeliveredType, Document } from '../../domain/types/resource-type.ts'
import type { Note } from '../../store/notes.ts'
import { NOTE_KINDS, type NoteKind } from './evidence-notes.ts'
import { Fleet } from './fleet.ts'

const types = builtInTypes()
const CLUSTERS = ['one', 'two'] as const
const COMPONENTS = ['a', 'b'] as const
const ENDPOINTS = types.delivered.map(({ delivery }) => delivery.endpoint)
const INTERVAL_S = 60
const RULES = {
  late: 1.5,
  offline: 3,
  defaultIntervalMs: INTERVAL_S * 1000,
  unobservedAfter: () => 0,
  isUnobserved: () => false,
}

interface Message {
  readonly at: number
  readonly cluster: string
}
interface PollMessage extends Message {
  readonly endpoint: string
  readonly digest: string
}
interface ReportMessage extends Message {
  readonly applied: Readonly<Record<string, string>>
  readonly ready: Readonly<Record<string, string>>
}
interface EventMessage extends Message {
  readonly component: string
  readonly digest: string | undefined
  readonly verdict: 'failed' | 'succeeded'
}

/** Two replicas, a state that both serve, and everything that was ever sent to them. */
class World {
  now = Date.parse('2026-03-01T00:00:00Z')
  readonly state = new State(types)
  readonly polls: PollMessage[] = []
  readonly reports: ReportMessage[] = []
  readonly events: EventMessage[] = []
  /** Digests that were ever served, of answers and of inputs. */
  readonly digests: string[] = ['0123456789abcdef']
  readonly notes = new Map<string, Note>()
  replicas = [this.#replica(), this.#replica()]
  #revision = 0

  constructor() {
    for (const [type, documents] of Object.entries(smallFleet()))
      for (const document of documents as Document[]) this.write(type, document)
  }

  #replica(): Fleet {
    const fleet: Fleet = new Fleet({
      types,
      state: this.state,
      now: () => this.now,
      rules: RULES,
      touched: (kind, key) => this.#touched.add(`${kind}/${key}`),
    })
    return fleet
  }

  readonly #touched = new Set<string>()

  write(type: string, document: Document): void {
    const normal = (types.get(type)?.normalise(document) ?? document) as Document
    const size = JSON.stringify(normal).length
    const after = { document: normal, deleted: false, size }
    this.#revision += 1
    this.state.apply(this.#revision, [{ type, id: document.id, after }])
  }

  entry(cluster: string): Entry {
    return this.state.get('clusters', cluster) as Entry
  }

  /** What a cluster gets, as the cluster itself reads it. */
  answer(cluster: string, endpoint: string): { digest: string; inputs: readonly JsonObject[] } {
    const type = types.byEndpoint(endpoint) as DeliveredType
    const { text } = renderInputs(servedTo(types, this.state, cluster), types, type, this.entry(cluster))
    const { inputs } = JSON.parse(text) as { inputs: JsonObject[] }
    return { digest: String(inputs[0]?.answer_digest ?? ''), inputs }
  }

  poll(replica: number, cluster: string, endpoint: string): void {
    const type = types.byEndpoint(endpoint) as DeliveredType
    const view = servedTo(types, this.state, cluster)
    const { digest: mark } = renderInputs(view, types, type, this.entry(cluster))
    const { digest, inputs } = this.answer(cluster, endpoint)
    const served = inputs.length > 0 ? mark : undefined
    this.replicas[replica]?.notePoll(cluster, endpoint, served, this.state.revision, undefined, 't')
    this.polls.push({ at: this.now, cluster, endpoint, digest })
    this.digests.push(digest, ...inputs.map((input) => String(input.digest)))
  }

  report(replica: number, message: ReportMessage): void {
    const halves = (digest: string) => parseHex(digest) as Halves
    this.replicas[replica]?.noteReport(
      message.cluster,
      {
        everyMs: INTERVAL_S * 1000,
        part: '',
        applied: new Map(Object.entries(message.applied).map(([key, digest]) => [key, halves(digest)])),
        ready: Object.entries(message.ready).map(([id, digest]) => ({ id, mark: halves(digest) })),
      },
      undefined,
    )
    this.reports.push(message)
  }

  event(replica: number, message: EventMessage): void {
    this.replicas[replica]?.noteEvent(this.entry(message.cluster), {
      object: `HelmRelease/${message.component}`,
      endpoint: undefined,
      component: message.component,
      isRelease: true,
      verdict: message.verdict,
      mark: message.digest === undefined ? undefined : parseHex(message.digest),
      reason: 'r',
      message: 'm',
    })
    this.events.push(message)
  }

  /** Writes the notes of all replicas, as the newest under each key, and reads them back everywhere. */
  sync(): void {
    for (const name of this.#touched) {
      const [kind, key] = [name.slice(0, name.indexOf('/')), name.slice(name.indexOf('/') + 1)]
      for (const replica of this.replicas) {
        const note = replica.noteOf(kind as NoteKind, key)
        const known = this.notes.get(name)
        if (note && (!known || isNewer(note, known))) this.notes.set(name, note)
      }
    }
    this.#touched.clear()
    for (const replica of this.replicas) this.#readInto(replica, [...this.notes])
  }

  #readInto(fleet: Fleet, notes: readonly (readonly [string, Note])[]): void {
    for (const [name, note] of notes) fleet.merge(name.split('/')[0] as NoteKind, note)
  }

  /** Replaces the replicas by new ones that know only what is in the store. */
  restart(): void {
    this.replicas = [this.#replica(), this.#replica()]
    this.sync()
    assert.deepEqual(NOTE_KINDS.length, 5)
  }

  /** What a process knows of polls, and the rows, after it has read the notes in a given order. */
  knownAfter(order: (notes: (readonly [string, Note])[]) => (readonly [string, Note])[]): unknown {
    const fleet = this.#replica()
    this.#readInto(fleet, order([...this.notes]))
    return CLUSTERS.map((cluster) => {
      const record = fleet.records.get(cluster)
      const polls = ENDPOINTS.map((endpoint) => {
        const poll = record?.poll(endpoint)
        if (!poll) return undefined
        const { at, fullAt, mark, revision, since, sinceRevision, stagedFrom, stagedSince, by } = poll
        const { intervalMs } = poll
        return { at, fullAt, mark, revision, since, sinceRevision, stagedFrom, stagedSince, by, intervalMs }
      })
      return [fleet.rowOf(this.entry(cluster)), record?.lastSeen, polls]
    })
  }
}

function isNewer(note: Note, other: Note): boolean {
  if (note.time !== other.time) return note.time > other.time
  return other.value === null || (note.value !== null && note.value > other.value)
}

type Step = (world: World) => void

const replica = fc.nat({ max: 1 })
const cluster = fc.constantFrom(...CLUSTERS)
const endpoint = fc.constantFrom(...ENDPOINTS)
const component = fc.constantFrom(...COMPONENTS)
const pick = fc.nat({ max: 1000 })

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.tuple(component, fc.constantFrom('v1', 'v2')).map(
    ([id, oci_tag]): Step =>
      (world) => {
        const { document } = world.state.get('platform_components', id) as Entry
        world.write('platform_components', { ...document, oci_tag })
      },
  ),
  fc.tuple(cluster, fc.constantFrom('1', '2')).map(
    ([id, replicas]): Step =>
      (world) => {
        const { document } = world.entry(id)
        const assigned = COMPONENTS.map((each) => ({ id: each, enabled: true }))
        world.write('clusters', { ...document, platform_components: assigned, patches: { a: { replicas } } })
      },
  ),
  {
    weight: 4,
    arbitrary: fc.tuple(replica, cluster, endpoint).map(
      ([at, id, name]): Step =>
        (world) =>
          world.poll(at, id, name),
    ),
  },
  // A report of what is there now, of all or some of it: mostly true to what was served.
  {
    weight: 3,
    arbitrary: fc.tuple(replica, cluster, fc.array(component)).map(
      ([at, id, except]): Step =>
        (world) => {
          const last = (name: string) =>
            world.polls.findLast((poll) => poll.cluster === id && poll.endpoint === name)
          const applied = Object.fromEntries(
            ENDPOINTS.map((name) => [name, last(name)?.digest ?? '']).filter(([, digest]) => digest !== ''),
          )
          const { inputs } = world.answer(id, 'platform-components')
          const ready = inputs.filter((input) => !except.includes(input.id as 'a'))
          world.report(at, {
            at: world.now,
            cluster: id,
            applied,
            ready: Object.fromEntries(ready.map((input) => [String(input.id), String(input.digest)])),
          })
        },
    ),
  },
  // A report with digests from any time.
  fc.tuple(replica, cluster, endpoint, component, pick, pick).map(
    ([at, id, name, part, one, other]): Step =>
      (world) => {
        const of = (n: number): string =>
          world.digests.filter(Boolean)[n % world.digests.filter(Boolean).length] as string
        world.report(at, {
          at: world.now,
          cluster: id,
          applied: { [name]: of(one) },
          ready: { [part]: of(other) },
        })
      },
  ),
  fc.tuple(replica, cluster, component, fc.option(pick), fc.boolean()).map(
    ([at, id, part, n, failed]): Step =>
      (world) => {
        const known = world.digests.filter(Boolean)
        const digest = n === null ? undefined : known[n % known.length]
        const verdict = failed ? 'failed' : 'succeeded'
        world.event(at, { at: world.now, cluster: id, component: part, digest, verdict })
      },
  ),
  {
    weight: 3,
    arbitrary: fc.constantFrom(1, 30, 100, 200, 4000).map(
      (s): Step =>
        (world) => {
          world.now += s * 1000
        },
    ),
  },
  fc.constant<Step>((world) => world.sync()),
  fc.constant<Step>((world) => {
    world.sync()
    world.restart()
  }),
)

function last<T extends Message>(messages: readonly T[], cluster: string): T | undefined {
  return messages.findLast((message) => message.cluster === cluster)
}

/** Checks a replica against all that was ever sent to any. */
function check(world: World, fleet: Fleet): void {
  for (const id of CLUSTERS) {
    const situation = fleet.situationOf(world.entry(id))
    const row = rowOf(situation)
    assert.deepEqual(fleet.rowOf(world.entry(id)), row, 'a kept row is what would be derived now')
    const heard = Math.max(
      0,
      ...[...world.polls, ...world.reports].filter((m) => m.cluster === id).map(({ at }) => at),
    )
    if (row.contact === 'current') assert.ok(world.now - heard < 1.5 * situation.interval.ms)
    const report = last(world.reports, id)
    for (const desired of situation.desired) {
      const answer = world.answer(id, desired.endpoint)
      const poll = world.polls.findLast((each) => each.cluster === id && each.endpoint === desired.endpoint)
      const delivery = deliveryOf(situation, desired)
      if (delivery !== 'behind') assert.equal(poll?.digest, answer.digest, 'what is not behind was served')
      if (delivery === 'applied') {
        assert.ok(report, 'nothing is applied without a report')
        assert.equal(report.applied[desired.endpoint] ?? '', answer.digest)
      }
      for (const input of desired.components) {
        const health = healthOf(situation, desired, input)
        const digest = answer.inputs.find((each) => each.id === input.id)?.digest
        if (health === 'healthy') {
          assert.equal(report?.ready[input.id], digest, 'only a report of the present digest is green')
          assert.ok(world.now - (report?.at ?? 0) < 3 * situation.interval.ms)
          assert.ok(row.contact === 'current' || row.contact === 'late')
        }
        if (health === 'failed')
          assert.ok(
            world.events.some(
              (event) =>
                event.cluster === id &&
                event.component === input.id &&
                event.verdict === 'failed' &&
                (event.digest ?? digest) === digest &&
                world.now - event.at < 3_600_000,
            ),
          )
      }
    }
  }
}

test('no state is better than its evidence, whatever happens and whichever replica hears of it', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const world = new World()
      for (const run of steps) {
        run(world)
        world.now += 1
        // Replicas agree once they have read each other's notes; each of them alone claims nothing more.
        world.sync()
        for (const fleet of world.replicas) check(world, fleet)
      }
    }),
    { numRuns: 200, interruptAfterTimeLimit: 20_000 },
  )
})

test('notes come to the same rows in whatever order they are read, and however often', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), fc.array(fc.nat()), (steps, order) => {
      const world = new World()
      for (const run of steps) {
        run(world)
        world.now += 1
      }
      world.sync()
      const straight = world.knownAfter((notes) => notes)
      const shuffled = world.knownAfter((notes) => {
        const mixed = order
          .map((n) => notes[n % Math.max(1, notes.length)])
          .filter((note) => note !== undefined)
        return [...mixed, ...notes.toReversed(), ...mixed]
      })
      assert.deepEqual(shuffled, straight)
    }),
    { numRuns: 100, interruptAfterTimeLimit: 20_000 },
  )
})
