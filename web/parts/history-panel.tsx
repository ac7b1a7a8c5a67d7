// The last revisions that a filter leaves, with the way to all of them.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { queries, type RevisionFilter } from '../api/queries.ts'
import { Age } from './age.tsx'
import { Facts } from './facts.tsx'
import { Loaded } from './loaded.tsx'
import { Panel } from './page.tsx'
import { RevisionLink } from './revision-link.tsx'

const SHOWN = 12

/** Of a cluster: what changed it, or a definition while it was assigned to it. */
export function HistoryPanel({ filter }: { readonly filter: RevisionFilter }) {
  const query = useQuery(queries.revisions(filter, SHOWN))
  return (
    <Panel
      title="Changes"
      aside={
        <Link to="/changes" search={filter}>
          All
        </Link>
      }
    >
      <Loaded query={query} lines={SHOWN}>
        {(revisions) => (
          <Facts
            label="Changes"
            head={['Revision', 'When', 'Who', 'What']}
            rows={revisions.map(({ revision, time, actor, operation, message }) => ({
              id: String(revision),
              cells: [
                <RevisionLink key="revision" revision={revision} />,
                <Age key="when" at={time} />,
                actor,
                message ?? operation,
              ],
            }))}
          />
        )}
      </Loaded>
    </Panel>
  )
}
