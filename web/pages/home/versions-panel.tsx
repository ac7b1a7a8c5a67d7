// Which versions of the first definitions are in use, and how they fare.
import { useQuery } from '@tanstack/react-query'
import { queries } from '../../api/queries.ts'
import { Loaded } from '../../parts/loaded.tsx'
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
  return (
    <Panel title="Versions in use">
      <Loaded query={query} lines={SHOWN}>
        {({ body }) =>
          body.length === 0 ? (
            <Empty title={`There is no ${singular} yet`} />
          ) : (
            <table className={classes.table}>
              <thead>
                <tr>
                  <th scope="col">{singular}</th>
                  <th scope="col">versions, and on how many clusters</th>
                </tr>
              </thead>
              <tbody>
                {body.map(({ id }) => (
                  <VersionRow key={String(id)} type={type} id={String(id)} />
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </Panel>
  )
}

function VersionRow({ type, id }: { readonly type: string; readonly id: string }) {
  const { data } = useQuery(queries.versions(type, id))
  return (
    <tr>
      <th scope="row">{id}</th>
      <td>
        {data?.versions.length === 0 && <span className={classes.none}>on no cluster</span>}
        {data?.versions.map(({ version, clusters, failed, overridden }) => (
          <span key={version} className={classes.version}>
            <code>{version ?? 'none'}</code> <b>{clusters}</b>
            {overridden > 0 && <span className={classes.none}> {overridden} by override</span>}
            {failed > 0 && <span className={classes.failed}> {failed} failed</span>}
          </span>
        ))}
      </td>
    </tr>
  )
}
