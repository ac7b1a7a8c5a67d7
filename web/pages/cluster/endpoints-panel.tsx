// What the cluster should get at each endpoint, what it was served, and what it reports to have applied.
import { Code } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import type { ClusterStatus, EndpointStatus } from '../../../src/api/status-schema.ts'
import { isHeard } from '../../../src/domain/status/status-words.ts'
import { Age } from '../../parts/age.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Panel } from '../../parts/page.tsx'
import { StateBadge } from '../../parts/state-badge.tsx'

const SHORT = 8

export function EndpointsPanel({ status: { contact, endpoints } }: { readonly status: ClusterStatus }) {
  return (
    <Panel title="Desired, served, applied">
      <Facts
        label="Endpoints"
        head={['Endpoint', 'Delivery', 'Inputs', 'Desired', 'Served', 'Applied']}
        rows={Object.entries(endpoints).map(([name, endpoint]) => ({
          id: name,
          cells: [
            name,
            <Delivery key="delivery" endpoint={endpoint} isPast={!isHeard(contact.state)} />,
            endpoint.inputs,
            ...digests(endpoint),
          ],
        }))}
      />
    </Panel>
  )
}

function Delivery({
  endpoint: { delivery, reason, message, served, desired },
  isPast,
}: {
  readonly endpoint: EndpointStatus
  readonly isPast: boolean
}) {
  return (
    <>
      <StateBadge state={delivery} isPast={isPast} /> {[reason, message].filter(Boolean).join(': ')}
      {served && served.digest !== desired && (
        <Link to="." search={(kept) => ({ ...kept, view: 'compare', past: String(served.revision) })}>
          what differs
        </Link>
      )}
    </>
  )
}

function digests({ desired, served, applied, inputs }: EndpointStatus) {
  const nothing = inputs === 0 ? 'nothing' : 'unknown'
  return [
    <Digest key="desired" digest={desired} none={nothing} />,
    <Moment key="served" mark={served} at={served?.at} />,
    <Moment key="applied" mark={applied} at={applied?.at} />,
  ]
}

interface MomentProps {
  readonly mark: { readonly digest: string | null; readonly revision: number | null } | null
  readonly at: string | undefined
}

function Moment({ mark, at }: MomentProps) {
  if (!mark) return 'never'
  return (
    <>
      <Digest digest={mark.digest} none="nothing" /> {mark.revision !== null && `#${mark.revision} `}
      <Age at={at} />
    </>
  )
}

/** Equal digests are equal contents, so the first digits do for the eye. */
function Digest({ digest, none }: { readonly digest: string | null; readonly none: string }) {
  return digest === null ? none : <Code title={digest}>{digest.slice(0, SHORT)}</Code>
}
