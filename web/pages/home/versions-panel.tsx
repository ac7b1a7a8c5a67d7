// Which versions of the first definitions are in use, and how they fare.
import { useQuery } from '@tanstack/react-query'
import { queries, STATUS_REFRESH_MS } from '../../api/queries.ts'
import { Facts } from '../../parts/facts.tsx'
import { AsOf, Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import classes from './versions-panel.module.css'

const SHOWN = 10

export function VersionsPanel() {
  const settings = useQuery(queries.settings())
  const type = settings.data?.types.find(({ delivery }) => delivery?.versions)
  if (!type) return null
  return <VersionsOf type={type.name} singular={type.singular} />
}

function VersionsOf({ type, singular }: { readonly type: string; readonly singular: string }) {
  const query = useQuery(queries.documents(type, { offset: 0, limit: SHOWN }))
  const first = query.data?.body[0]?.id
  // All counts are read at the same time.
  const counted = useQuery({ ...queries.versions(type, String(first)), enabled: first !== undefined })
  return (
    <Panel title="Versions in use" aside={<AsOf query={counted} staleAfterMs={4 * STATUS_REFRESH_MS} />}>
      <Loaded query={query} lines={SHOWN}>
        {({ body }) =>
          body.length === 0 ? (
            <Empty title={`There is no ${singular} yet`} />
          ) : (
            <Facts
              label="Versions in use"
              head={[singular, 'versions, and on how many clusters']}
              rows={body.map(({ id }) => ({
                id: String(id),
                cells: [String(id), <VersionsOfOne key="versions" type={type} id={String(id)} />],
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  )
}

function VersionsOfOne({ type, id }: { readonly type: string; readonly id: string }) {
  const { data, error } = useQuery(queries.versions(type, id))
  if (error && !data) return <span className={classes.none}>unknown: {error.message}</span>
  if (data?.versions.length === 0) return <span className={classes.none}>on no cluster</span>
  return data?.versions.map(({ version, clusters, failed, overridden }) => (
    <span key={version} className={classes.version}>
      <code>{version ?? 'none'}</code> <b>{clusters}</b>
      {overridden > 0 && <span className={classes.none}>, {overridden} by override</span>}
      {failed > 0 && <span className={classes.failed}>, {failed} failed</span>}
    </span>
  ))
}
