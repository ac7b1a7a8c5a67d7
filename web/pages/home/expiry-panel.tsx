// Credentials that end soon: that of who is logged in, and for admins all named tokens. Nothing where none does.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { queries } from '../../api/queries.ts'
import { useServerNow } from '../../api/server-clock.ts'
import { Age } from '../../parts/age.tsx'
import { Panel } from '../../parts/page.tsx'
import { ProblemNotice } from '../../parts/problem-notice.tsx'
import { useMay } from '../../session/permissions.ts'
import classes from './home-page.module.css'

/** Enough to rotate a token before what uses it stands still. */
const SOON_MS = 14 * 24 * 3_600_000

interface Ending {
  readonly name: string
  readonly detail: string
  readonly at: string
}

export function ExpiryPanel() {
  const isAdmin = useMay('admin')
  const identity = useQuery(queries.whoami())
  const tokens = useQuery({ ...queries.tokens(), enabled: isAdmin })
  const now = useServerNow()
  const session = identity.data?.expires_at
  const all: readonly Ending[] = [
    ...(session ? [{ name: 'Your session', detail: identity.data?.name ?? '', at: session }] : []),
    ...(isAdmin ? (tokens.data ?? []) : []).flatMap(({ name, role, expires_at }) =>
      expires_at ? [{ name, detail: `token · ${role}`, at: expires_at }] : [],
    ),
  ]
  const soon = all
    .filter(({ at }) => Date.parse(at) > now && Date.parse(at) < now + SOON_MS)
    .toSorted((a, b) => Date.parse(a.at) - Date.parse(b.at))
  if (isAdmin && tokens.error)
    return <ProblemNotice error={tokens.error} onRetry={() => void tokens.refetch()} />
  if (soon.length === 0) return null
  return (
    <Panel title="Ends soon">
      <ul className={classes.list}>
        {soon.map(({ name, detail, at }) => (
          <li key={`${detail} ${name}`}>
            <div className={classes.line}>
              <Link to="/access">{name}</Link>
              <Age at={at} />
            </div>
            <div className={classes.detail}>{detail}</div>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
