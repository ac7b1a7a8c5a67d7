// Which versions of a definition clusters are to have, by environment, and how they fare there.
import { useQuery } from '@tanstack/react-query'
import type { VersionCounts } from '../../../src/api/versions-schema.ts'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import classes from './version-matrix.module.css'

export function VersionMatrix({ type, id }: { readonly type: string; readonly id: string }) {
  const query = useQuery(queries.versions(type, id))
  return (
    <Panel
      title="Versions by environment"
      aside={<AsOf query={query} staleAfterMs={4 * STATUS_REFRESH_MS} />}
    >
      <Loaded query={query}>
        {({ versions }) => {
          if (versions.length === 0)
            return (
              <Empty title="On no cluster">Assign it to clusters, and its versions are counted here.</Empty>
            )
          const environments = [
            ...new Set(versions.flatMap((each) => Object.keys(each.environments))),
          ].toSorted()
          return (
            <Facts
              label="Versions by environment"
              head={['Version', 'Clusters', 'By override', ...environments]}
              rows={versions.map((each) => ({
                id: each.version ?? 'none',
                cells: [
                  <code key="version">{each.version ?? 'none'}</code>,
                  <Counts key="all" counts={each} />,
                  each.overridden,
                  ...environments.map((environment) => (
                    <Counts key={environment} counts={each.environments[environment]} />
                  )),
                ],
              }))}
            />
          )
        }}
      </Loaded>
    </Panel>
  )
}

/** Applied and failed are said only where somebody reports them: silence is no success. */
function Counts({ counts }: { readonly counts: VersionCounts | undefined }) {
  if (!counts) return <span className={classes.none}>none</span>
  const { clusters, applied, failed } = counts
  return (
    <span>
      <b>{clusters}</b>
      {applied > 0 && <span className={classes.none}>, {applied} applied</span>}
      {failed > 0 && <span className={classes.failed}>, {failed} failed</span>}
    </span>
  )
}
