// The last revisions that changed the cluster, or a definition while it was assigned to it.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Panel } from '../../parts/page.tsx'
import { RevisionLink } from '../../parts/revision-link.tsx'

const SHOWN = 12

export function ClusterHistory({ cluster }: { readonly cluster: string }) {
  const query = useQuery(queries.revisions({ cluster }, SHOWN))
  return (
    <Panel
      title="Changes"
      aside={
        <Link to="/changes" search={{ cluster }}>
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
