// Names in URLs that the service keeps for itself: no resource type may take them.

/** First segments of the service's own routes, and names of what the store keeps for itself. */
const IN_USE =
  'api batch console debug docs health history log metrics openapi overrides ready reports revisions rollback rollout_plans rollouts holds sources status tokens watch whoami'
/** First segments of routes that are still to come. */
const FOR_LATER = 'alerts approvals events fleet login mcp policies proposals webhooks'

export const RESERVED_KINDS: ReadonlySet<string> = new Set(`${IN_USE} ${FOR_LATER}`.split(' '))

/** Segments below a cluster that are not lists of references. */
export const RESERVED_LISTS: ReadonlySet<string> = new Set(
  'bootstrap history inputs patches restore status'.split(' '),
)

/** Last segments of poll URLs that clusters report to. */
export const RESERVED_ENDPOINTS: ReadonlySet<string> = new Set(['ack', 'events'])

/** Fields that every input ends with. */
export const RESERVED_INPUT_FIELDS: ReadonlySet<string> = new Set(['digest', 'answer_digest'])
