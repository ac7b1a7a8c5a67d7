// Changes by day: what was done, who did it and why, and which documents it touched.
import { Badge, Group } from '@mantine/core'
import type { Revision } from '../../../src/api/wire-types.ts'
import { Age } from '../../parts/age.tsx'
import { RevisionLink } from '../../parts/revision-link.tsx'
import classes from './timeline.module.css'

/** Documents that a change names; its count says how many there are. */
const NAMED = 4

export function Timeline({ revisions }: { readonly revisions: readonly Revision[] }) {
  const days = Map.groupBy(revisions, ({ time }) => time.slice(0, 10))
  return [...days].map(([day, all]) => (
    <section key={day} aria-label={day}>
      <h3 className={classes.day}>{day} (UTC)</h3>
      <ol className={classes.list}>
        {all.map((each) => (
          <Item key={each.revision} revision={each} />
        ))}
      </ol>
    </section>
  ))
}

function Item({ revision: { revision, time, actor, message, operation, changes, change_count } }: ItemProps) {
  return (
    <li className={classes.item}>
      <div className={classes.line}>
        <RevisionLink revision={revision} />
        <span className={classes.text}>{message ?? operation}</span>
      </div>
      <div className={classes.detail}>
        {message && `${operation} · `}
        {actor}, <Age at={time} />
      </div>
      <Group gap={4}>
        {changes.slice(0, NAMED).map(({ type, id, op }) => (
          <Badge key={`${type}/${id}`} variant="default" radius="sm" fw={400}>
            {op} {type}/{id}
          </Badge>
        ))}
        {change_count > NAMED && <span className={classes.detail}>and {change_count - NAMED} more</span>}
      </Group>
    </li>
  )
}

interface ItemProps {
  readonly revision: Revision
}
