// The shape of rollouts and holds on the wire.
import type { FieldChange } from '../base/diff.ts'
import type { Json } from '../base/json.ts'
import type { SchemaObject } from '../base/json-schema.ts'
import {
  type Approval,
  type CheckResult,
  type GateResult,
  type Gates,
  ROLLOUT_STATES,
  type Rollout,
  type RolloutEvent,
  WAVE_STATES,
  type Wave,
  type WaveSpec,
} from '../domain/rollouts/rollout.ts'
import { BATCH_SCHEMA } from './batch-schema.ts'
import { ref } from './component-ref.ts'
import { MAX_MESSAGE, PLAN_PATTERN } from './limits.ts'

/** One wave of a rollout, as far as it is now. */
export interface ShownWave
  extends Pick<Wave, 'name' | 'state' | 'members' | 'opened' | 'opened_at' | 'passed_at'> {
  readonly served: number
  readonly applied: number
  readonly healthy: number
  readonly failed: number
  readonly set_aside: number
  readonly gates: readonly GateResult[]
  /** Approvals that are missing, before it opens or after its gates hold. */
  readonly missing_approvals?: readonly MissingApproval[]
}

export interface MissingApproval {
  readonly when: 'before' | 'after'
  /** As a sentence: how many more, and by whom. */
  readonly message: string
  /** Those whose change it is, where others have to approve it. */
  readonly not_by?: readonly string[]
  /** Where admins have to. */
  readonly role?: 'admin'
}

/** What a rollout changes: the same fields of one or several documents. */
export interface ShownEdit {
  readonly type: string
  readonly op: 'update' | 'create' | 'delete'
  readonly documents: number
  /** The first of them. */
  readonly ids: readonly string[]
  /** The first of them, of an update; a field that is missing is null. */
  readonly fields: readonly FieldChange[]
}

/** So many edits, ids and fields are shown. */
export const SHOWN_EDITS = 20
export const SHOWN_OPERATIONS = 100

export interface ShownRollout
  extends Pick<
    Rollout,
    | 'id'
    | 'state'
    | 'message'
    | 'started_by'
    | 'started_at'
    | 'ended_at'
    | 'waiting_for'
    | 'operation'
    | 'plan'
    | 'skipped'
    | 'set_aside'
    | 'bypass'
  > {
  readonly strategy: string | null
  readonly waves: readonly ShownWave[]
  readonly approvals: readonly Approval[]
  readonly checks: readonly CheckResult[]
  readonly events: readonly RolloutEvent[]
  /** Of one that has not ended, asked for by its id. */
  readonly edits?: readonly ShownEdit[]
  /** The operations of the batch that it was started with, where they are few. */
  readonly operations?: readonly Json[]
}

/** The response to a write that starts a rollout. */
export interface RolloutStarted {
  readonly rollout: ShownRollout
  readonly revision: number
  readonly warnings: readonly string[]
}

/** One wave of a rollout that has not started; beside who is in it, what of its own it waits for. */
export interface PlannedWave
  extends Pick<WaveSpec, 'max_concurrent' | 'start_at' | 'window' | 'approval'>,
    Pick<Gates, 'soak_s' | 'checks'> {
  readonly name: string
  readonly members: number
  /** The first of them. */
  readonly details: readonly string[]
  /** Each gate in numbers of clusters. */
  readonly gates: readonly { readonly kind: string; readonly needed: number; readonly of: number }[]
  /** Members that nothing is to be expected of now, and why of the first of them. */
  readonly absent: number
  readonly absent_details: readonly AbsentCluster[]
}

export interface AbsentCluster {
  readonly cluster: string
  readonly why: (typeof ABSENCES)[number]
}

const ABSENCES = ['offline', 'never', 'refused', 'unobserved', 'held'] as const

/** A member of a rollout. */
export interface ShownMember {
  readonly cluster: string
  readonly wave: string
  readonly state: MemberState
}

/** How far a member is. `unaffected` are those that the rollout changes nothing for any more. */
export const MEMBER_STATES = [
  'waiting',
  'open',
  'served',
  'applied',
  'healthy',
  'failed',
  'absent',
  'skipped',
  'unaffected',
] as const
export type MemberState = (typeof MEMBER_STATES)[number]

/** A cluster that is kept at what it is served. */
export interface ShownHold {
  readonly cluster: string
  readonly reason: string
  readonly held_by: string
  readonly since: string
  readonly until?: string
  /** Of one that ends by itself. */
  readonly expires_in_s?: number
}

const count = { type: 'integer', minimum: 0 }
const text = { type: 'string' }
const moment = { type: 'string', format: 'date-time' }
const texts = { type: 'array', items: text }

const GATE: SchemaObject = {
  type: 'object',
  required: ['kind', 'needed', 'value', 'holds', 'count', 'needed_count', 'of'],
  properties: {
    kind: {
      type: 'string',
      enum: ['served_percent', 'applied_percent', 'healthy_percent', 'failures', 'check'],
    },
    name: { ...text, description: 'Of a check.' },
    needed: { type: 'number', description: 'At least so many percent; at most so many failures.' },
    value: { type: 'number' },
    holds: { type: 'boolean' },
    count: { type: 'integer', minimum: 0, description: 'Of how many clusters it is true.' },
    needed_count: {
      type: 'integer',
      minimum: 0,
      description: 'Required number; for failures, the allowed number.',
    },
    of: { type: 'integer', minimum: 0, description: 'Total, without those that are set aside.' },
  },
}

const WAVE: SchemaObject = {
  type: 'object',
  required: [
    'name',
    'state',
    'members',
    'opened',
    'served',
    'applied',
    'healthy',
    'failed',
    'set_aside',
    'gates',
  ],
  properties: {
    name: text,
    state: { type: 'string', enum: WAVE_STATES },
    members: { ...count, description: 'How many clusters are in it.' },
    opened: { ...count, description: 'How many of them are served the change.' },
    opened_at: moment,
    passed_at: moment,
    served: count,
    applied: count,
    healthy: count,
    failed: count,
    set_aside: { ...count, description: 'Absent ones, which do not count after the deadline.' },
    gates: { type: 'array', items: GATE },
    missing_approvals: {
      type: 'array',
      description: 'Approvals that it waits for, or will wait for. Left out where it needs none.',
      items: {
        type: 'object',
        required: ['when', 'message'],
        properties: {
          when: { type: 'string', enum: ['before', 'after'] },
          message: { ...text, example: '1 more approval before wave prod' },
          not_by: { ...texts, description: 'Those whose change it is, where others have to approve it.' },
          role: { type: 'string', const: 'admin', description: 'Where admins have to.' },
        },
      },
    },
  },
}

const EDIT: SchemaObject = {
  type: 'object',
  required: ['type', 'op', 'documents', 'ids', 'fields'],
  properties: {
    type: { ...text, description: 'Type of the documents.' },
    op: { type: 'string', enum: ['update', 'create', 'delete'] },
    documents: { ...count, description: 'How many documents it is the same for.' },
    ids: { ...texts, description: 'Ids of the first of them.' },
    fields: {
      type: 'array',
      description: 'The first fields of an update; null is a missing field.',
      items: {
        type: 'object',
        required: ['path', 'before', 'after'],
        properties: { path: text, before: {}, after: {} },
      },
    },
  },
}

/** One wave of a preview. */
export const PLANNED_WAVE_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['name', 'members', 'details', 'gates', 'absent', 'absent_details'],
  properties: {
    name: text,
    members: { ...count, description: 'How many clusters are in it.' },
    details: { ...texts, description: 'Ids of the first of them.' },
    gates: {
      type: 'array',
      items: {
        type: 'object',
        required: ['kind', 'needed', 'of'],
        properties: { kind: text, needed: count, of: count },
      },
      description: 'Each gate in numbers of clusters.',
    },
    absent: { ...count, description: 'Members that nothing is to be expected of now.' },
    absent_details: {
      type: 'array',
      description: 'Why, of the first of them.',
      items: {
        type: 'object',
        required: ['cluster', 'why'],
        properties: { cluster: text, why: { type: 'string', enum: ABSENCES } },
      },
    },
    soak_s: { ...count, description: 'For how long its gates have to hold.' },
    checks: { type: 'array', items: { type: 'object' }, description: 'Checks outside that have to pass.' },
    max_concurrent: count,
    start_at: moment,
    window: { type: 'object', description: 'When it may open.' },
    approval: { type: 'object', description: 'Required approvals.' },
  },
}

const ROLLOUT_SCHEMA: SchemaObject = {
  type: 'object',
  required: [
    'id',
    'state',
    'strategy',
    'message',
    'started_by',
    'started_at',
    'waiting_for',
    'waves',
    'approvals',
    'checks',
    'events',
    'skipped',
    'set_aside',
    'operation',
    'plan',
  ],
  properties: {
    id: { ...text, description: 'Its name: r, and the revision that started it.', example: 'r42' },
    state: { type: 'string', enum: ROLLOUT_STATES },
    strategy: { type: ['string', 'null'], description: 'Null where the waves came with the write.' },
    message: { type: ['string', 'null'] },
    started_by: text,
    started_at: moment,
    ended_at: moment,
    waiting_for: {
      type: ['string', 'null'],
      description: 'Why it does not go on now, in a sentence.',
      example: '2 of 40 clusters of wave 10-percent have not applied it yet: prod-eu-07, prod-us-01',
    },
    waves: { type: 'array', items: WAVE },
    approvals: {
      type: 'array',
      items: {
        type: 'object',
        required: ['wave', 'when', 'by', 'at'],
        properties: {
          wave: text,
          when: { type: 'string', enum: ['before', 'after'] },
          by: text,
          at: moment,
          remark: text,
        },
      },
    },
    events: {
      type: 'array',
      description: 'Events, the newest last.',
      items: {
        type: 'object',
        required: ['at', 'by', 'what'],
        properties: { at: moment, by: text, what: text, remark: text },
      },
    },
    bypass: { type: 'boolean', const: true, description: 'That it passes freezes; its message says why.' },
    checks: {
      type: 'array',
      description: 'The last answer to each check. Those about another plan do not count.',
      items: {
        type: 'object',
        required: ['wave', 'name', 'ok', 'by', 'at', 'plan'],
        properties: {
          wave: text,
          name: text,
          ok: { type: 'boolean' },
          by: text,
          at: moment,
          plan: { type: 'string', pattern: PLAN_PATTERN },
          remark: text,
        },
      },
    },
    skipped: { ...texts, description: 'Clusters that somebody took out.' },
    set_aside: { ...texts, description: "Clusters that were absent at their wave's deadline." },
    operation: { ...text, description: 'The change, in a line.' },
    plan: { type: 'string', pattern: PLAN_PATTERN },
    edits: {
      type: 'array',
      description:
        'Its changes, at most 20 edits. Present for a rollout that has not ended, when it is read by its id.',
      items: EDIT,
    },
    operations: {
      type: 'array',
      description:
        'The operations of the batch that started or amended it, at most 100. Missing where there are more, or where another write started it.',
      items: { type: 'object' },
    },
  },
}

export const ROLLOUT_SCHEMAS = {
  rollout: ROLLOUT_SCHEMA,
  rollout_started: {
    type: 'object',
    required: ['rollout', 'revision'],
    properties: {
      rollout: ref('rollout'),
      revision: count,
      warnings: texts,
    },
  },
  rollout_member: {
    type: 'object',
    required: ['cluster', 'wave', 'state'],
    properties: {
      cluster: text,
      wave: text,
      state: {
        type: 'string',
        enum: MEMBER_STATES,
        description:
          'Waiting: its wave is not open yet. Open: it was not served the change yet. Absent: it is not expected to poll now. Unaffected: the rollout changes nothing for it any more, and it does not count.',
      },
    },
  },
} satisfies Record<string, SchemaObject>

const remark = { type: 'string', maxLength: MAX_MESSAGE, description: 'Why.' }

/** What an answer to a check has to say. */
export const CHECK_REQUIRED = ['wave', 'name', 'ok']

/** What each action on a rollout takes in its body. */
export const ROLLOUT_ACTIONS = {
  pause: { remark },
  resume: {},
  retry: {},
  abort: { remark },
  finish: { remark },
  approve: {
    wave: { ...text, description: 'Name of the wave; the first that lacks an approval by default.' },
    when: { type: 'string', enum: ['before', 'after'] },
    plan: {
      type: 'string',
      pattern: PLAN_PATTERN,
      description: 'The plan that was looked at: an approval of another one is refused.',
    },
    remark,
  },
  check: {
    wave: { ...text, description: 'Name of the wave.' },
    name: { ...text, description: 'Name of the check.' },
    ok: { type: 'boolean' },
    plan: {
      type: 'string',
      pattern: PLAN_PATTERN,
      description: 'The plan that the answer is about; the present one by default.',
    },
    remark,
  },
  skip: {
    wave: { ...text, description: 'Name of the wave.' },
    clusters: { type: 'array', items: text, minItems: 1, maxItems: 10_000, uniqueItems: true },
  },
} as const satisfies Record<string, Record<string, SchemaObject>>

/** What an amendment takes: the whole change anew, and where it is to go another way, how. */
export const AMEND_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['operations'],
  properties: {
    ...BATCH_SCHEMA.properties,
    restart: {
      type: 'boolean',
      description:
        'Whether the waves start again: clusters of open ones return to the base first. Otherwise they get the new change at once.',
    },
    strategy: { type: 'string', minLength: 1, description: 'Name of another strategy.' },
    waves: { type: 'array', items: { type: 'object' }, description: 'Other waves, as a strategy has them.' },
    on_failure: { type: 'string' },
    bake_s: { type: 'integer' },
    stragglers: { type: 'string' },
    unmatched: { type: 'string' },
  },
  additionalProperties: false,
}

export const HOLD_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['cluster', 'reason', 'held_by', 'since'],
  properties: {
    cluster: text,
    reason: text,
    held_by: text,
    since: moment,
    until: { ...moment, description: 'When it ends by itself.' },
    expires_in_s: { ...count, description: 'In how many seconds that is.' },
  },
}

export const NEW_HOLD_SCHEMA: SchemaObject = {
  type: 'object',
  required: ['reason'],
  properties: {
    until: { ...moment, description: 'When it ends by itself; left out, it lasts until it is released.' },
    reason: { type: 'string', minLength: 1, maxLength: MAX_MESSAGE, description: 'Why the cluster is held.' },
  },
  additionalProperties: false,
}
