// The service itself on the wire: the processes that work on its store, and what bundles of this one carry.
import { ref } from './component-ref.ts'
import { COUNT, described, object, TIME, word } from './schema-parts.ts'

interface ShownReplica {
  readonly name: string
  readonly version: string
  readonly mode: 'read-only' | 'crud'
  readonly store: string
  readonly revision: number
  readonly started_at: string
  readonly seen_at: string
  /** Whether it is the process that answered. */
  readonly self: boolean
}

interface ShownTemplate {
  readonly kind: string
  readonly name: string
  readonly endpoints: readonly string[]
  /** Why clusters cannot report what they applied of it; null where they can. */
  readonly obstacle: string | null
}

export interface ServiceStatus {
  /** Null while the store is unavailable: then nobody knows. */
  readonly replicas: readonly ShownReplica[] | null
  readonly templates: readonly ShownTemplate[]
}

const text = { type: 'string' }

export const SERVICE_SCHEMAS = {
  replica: object({
    name: described(text, 'The name of its host, or of its pod.'),
    version: text,
    mode: word(['read-only', 'crud']),
    store: described(text, 'The store of the log: memory, sqlite or postgres.'),
    revision: described(COUNT, 'The revision that it served then.'),
    started_at: TIME,
    seen_at: described(TIME, 'It says every 30 seconds that it is there.'),
    self: described({ type: 'boolean' }, 'Whether it is the process that answered.'),
  }),
  service_status: object({
    replicas: {
      type: ['array', 'null'],
      items: ref('replica'),
      description: 'The processes on this store within the last hour; null while the store is unavailable.',
    },
    templates: {
      type: 'array',
      description: 'The manifests that bootstrap bundles carry.',
      items: object({
        kind: text,
        name: text,
        endpoints: described({ type: 'array', items: text }, 'Where it takes its inputs from.'),
        obstacle: described(
          { type: ['string', 'null'] },
          'Why clusters cannot report what they applied of it.',
        ),
      }),
    },
  }),
}
