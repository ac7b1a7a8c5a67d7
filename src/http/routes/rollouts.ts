// Rollouts as they are read: a list, one of them, its members. They are started by writes with `rollout`.
import { ref } from '../../api/component-ref.ts'
import { PAGES, STATUS_PAGES } from '../../api/limits.ts'
import {
  MEMBER_STATES,
  type MemberState,
  ROLLOUT_SCHEMAS,
  type ShownMember,
  type ShownRollout,
} from '../../api/rollout-schema.ts'
import { conflictOf, fail, invalid, notFound, type Result, succeed } from '../../base/problem.ts'
import type { Steps } from '../../base/steps.ts'
import type { Entry, View } from '../../domain/documents/view.ts'
import { asRollout, ROLLOUT_STATES, ROLLOUTS } from '../../domain/rollouts/rollout.ts'
import { stagingOf } from '../../domain/rollouts/staging.ts'
import { ok, READING, READING_ONE } from '../openapi/openapi-operation.ts'
import { pageIn, sendPageHeaders } from '../request/list-query.ts'
import { inPath, inQuery, pageOf } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { describeInFull, describeRollout, type Seen } from '../rollouts/describe-rollout.ts'
import { listMembers } from '../rollouts/list-members.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'
import { listFor } from '../status/list-for.ts'

const ID = inPath('id', 'Its id.', { type: 'string', example: 'r42' })
const PAGE = pageOf(PAGES)
const MEMBER_PAGE = pageOf(STATUS_PAGES)
const WAVE = inQuery('wave', 'Only members of this wave.', { type: 'string' })
const MEMBER_STATE = inQuery('state', 'Only members that are so far.', {
  type: 'string',
  enum: MEMBER_STATES,
})
const STATE = inQuery('state', 'Only rollouts in this state.', { type: 'string', enum: ROLLOUT_STATES })

/** In both modes. */
export function rolloutRoutes(service: Service): Route[] {
  return [listRoute(service), readRoute(service), membersRoute(service)]
}

function seenBy({ types, now }: Service, fleet: Seen['fleet'], view: View): Seen {
  return { types, fleet, view, now: now() }
}

function listRoute(service: Service): Route {
  return route({
    method: 'GET',
    path: '/rollouts',
    access: 'read',
    tag: 'rollouts',
    id: 'list_rollouts',
    summary: 'Rollouts, the newest first.',
    description: 'Those that have ended are listed too; state chooses.',
    parameters: [...PAGE, STATE],
    answers: {
      200: ok('Rollouts.', { type: 'array', items: ref('rollout') }, [
        'X-Request-Id',
        'X-Total-Count',
        'Link',
      ]),
    },
    problems: READING,
    schemas: ROLLOUT_SCHEMAS,
    handler: async (request, reply) => {
      const { state } = request.query
      const page = pageIn(request.query, PAGE[0])
      const listed = await listFor(service, request, function* (fleet, view): Steps<
        [ShownRollout[], number]
      > {
        const all: Entry[] = []
        for (const entry of view.all(ROLLOUTS)) {
          yield
          if (state === undefined || asRollout(entry).state === state) all.push(entry)
        }
        const newest = all.sort((a, b) => startOf(b) - startOf(a))
        const described: ShownRollout[] = []
        for (const entry of newest.slice(page.offset, page.offset + page.limit))
          described.push(yield* describeRollout(seenBy(service, fleet, view), entry))
        return [described, all.length]
      })
      if (!listed.ok) return sendProblem(reply, listed.problem)
      const [described, total] = listed.value
      sendPageHeaders(reply, request.url, page, total)
      return reply.header('Cache-Control', 'no-store').send(described)
    },
  })
}

/** The revision that started a rollout: what follows the letter of its id. */
function startOf({ id }: Entry): number {
  return Number(id.slice(1))
}

function readRoute(service: Service): Route {
  return route<'id'>({
    method: 'GET',
    path: '/rollouts/{id}',
    access: 'read',
    tag: 'rollouts',
    id: 'get_rollout',
    summary: 'One rollout: how far each wave is, and why it does not go on.',
    description:
      'Counts are of the present. Evidence about other answers than those of the rollout counts for nothing.',
    parameters: [ID],
    answers: { 200: ok('The rollout.', ref('rollout'), ['X-Request-Id']) },
    problems: READING_ONE,
    handler: async (request, reply) => {
      const { id } = request.params
      const found = await listFor(service, request, function* (fleet, view): Steps<ShownRollout | undefined> {
        const entry = view.get(ROLLOUTS, id)
        return entry && (yield* describeInFull(seenBy(service, fleet, view), entry))
      })
      if (!found.ok) return sendProblem(reply, found.problem)
      if (!found.value) return sendProblem(reply, notFound('rollout', id).problem)
      return reply.header('Cache-Control', 'no-store').send(found.value)
    },
  })
}

function membersRoute(service: Service): Route {
  const { types } = service
  return route<'id'>({
    method: 'GET',
    path: '/rollouts/{id}/members',
    access: 'read',
    tag: 'rollouts',
    id: 'list_rollout_members',
    summary: 'The clusters of a rollout, each with its wave and how far it is.',
    description:
      'In the order of the waves, and of each in the order in which they are opened. Only while the rollout goes on: of one that has ended, the rollout itself lists who was left out.',
    parameters: [ID, ...MEMBER_PAGE, WAVE, MEMBER_STATE],
    answers: {
      200: ok('Members.', { type: 'array', items: ref('rollout_member') }, [
        'X-Request-Id',
        'X-Total-Count',
        'Link',
      ]),
    },
    problems: [...READING_ONE, 409],
    handler: async (request, reply) => {
      const { id } = request.params
      const { wave, state } = request.query
      const page = pageIn(request.query, MEMBER_PAGE[0])
      const query = { ...page, wave, state: state as MemberState | undefined }
      const listed = await listFor(service, request, function* (fleet, view): Steps<
        Result<{ readonly members: ShownMember[]; readonly total: number }>
      > {
        const active = stagingOf(types, view).active.find(({ rollout }) => rollout.id === id)
        if (!active) return noMembers(view, id)
        const known = active.rollout.waves.map(({ name }) => name)
        if (wave !== undefined && !known.includes(wave))
          return invalid([{ path: '?wave', message: `must be one of ${known.join(', ')}, not "${wave}"` }])
        return succeed(yield* listMembers({ types, fleet, view }, active, query))
      })
      if (!listed.ok) return sendProblem(reply, listed.problem)
      if (!listed.value.ok) return sendProblem(reply, listed.value.problem)
      const { members, total } = listed.value.value
      sendPageHeaders(reply, request.url, page, total)
      return reply.header('Cache-Control', 'no-store').send(members)
    },
  })
}

function noMembers(view: View, id: string): Result<never> {
  const entry = view.get(ROLLOUTS, id)
  if (!entry) return notFound('rollout', id)
  const { state } = asRollout(entry)
  return fail(
    conflictOf('rollout_ended', `rollout "${id}" is ${state}: its members are kept only while it goes on`),
  )
}
