// Profiles of the process, for admins, where they are switched on: what takes time, and what takes memory.
import { Session } from 'node:inspector/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { JSON_TYPE } from '../../api/media-types.ts'
import type { Problem } from '../../base/problem.ts'
import { json, ok, READING } from '../openapi/openapi-operation.ts'
import { inQuery, numberIn } from '../request/parameters.ts'
import { sendProblem } from '../request/problem-response.ts'
import { type Route, route } from '../route.ts'
import type { Service } from '../service.ts'

const DEFAULT_SECONDS = 10
const SECONDS = inQuery('seconds', 'How long to look.', {
  type: 'integer',
  minimum: 1,
  maximum: 60,
  default: DEFAULT_SECONDS,
})
/** Bytes between two samples of what is allocated. */
const HEAP_INTERVAL = 64 * 1024
/** Microseconds between two samples of what runs. */
const CPU_INTERVAL = 1000
const BUSY: Problem = {
  code: 'unavailable',
  reason: 'too_many_requests',
  message: 'a profile is being taken already: try again',
}

/** Takes a profile with the debugger's protocol, inside the process: no port is opened. */
type Take = (session: Session, look: () => Promise<unknown>) => Promise<object>

const KINDS = {
  cpu: {
    summary: 'What the process spends its time on.',
    description: 'A .cpuprofile, for the developer tools of a browser.',
    async take(session, look) {
      await session.post('Profiler.enable')
      await session.post('Profiler.setSamplingInterval', { interval: CPU_INTERVAL })
      await session.post('Profiler.start')
      await look()
      const { profile } = await session.post('Profiler.stop')
      return profile
    },
  },
  heap: {
    summary: 'What allocates memory that is still in use.',
    description:
      'A .heapprofile, for the developer tools of a browser. It samples what is allocated meanwhile; it names functions and holds no data.',
    async take(session, look) {
      await session.post('HeapProfiler.enable')
      await session.post('HeapProfiler.startSampling', { samplingInterval: HEAP_INTERVAL })
      await look()
      const { profile } = await session.post('HeapProfiler.stopSampling')
      return profile
    },
  },
} as const satisfies Record<string, { summary: string; description: string; take: Take }>

export function profileRoutes({ hasProfiles = false, log }: Service): Route[] {
  if (!hasProfiles) return []
  let isBusy = false
  return Object.entries(KINDS).map(([kind, { summary, description, take }]) =>
    route({
      method: 'GET',
      path: `/debug/profiles/${kind}`,
      access: 'admin',
      tag: 'operations',
      id: `take_${kind}_profile`,
      summary,
      description: `${description} One at a time.`,
      parameters: [SECONDS],
      answers: {
        200: { ...ok('The profile.', {}, ['X-Request-Id']), content: json({ type: 'object' }, JSON_TYPE) },
      },
      problems: READING,
      handler: async (request, reply) => {
        if (isBusy) return sendProblem(reply, BUSY)
        const seconds = numberIn(request.query, SECONDS) ?? DEFAULT_SECONDS
        isBusy = true
        log.warn({ request_id: request.id, kind, seconds }, 'a profile is being taken')
        const session = new Session()
        try {
          session.connect()
          const profile = await take(session, () => sleep(seconds * 1000, undefined, { ref: false }))
          return reply.type(JSON_TYPE).send(JSON.stringify(profile))
        } finally {
          session.disconnect()
          isBusy = false
        }
      },
    }),
  )
}
