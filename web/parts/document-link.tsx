// The way to the page of a document, where it has one: of a cluster, of a rollout, of a definition.
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { ROLLOUTS } from '../../src/domain/rollouts/rollout.ts'
import { queries } from '../api/queries.ts'
import { ClusterLink } from './cluster-link.tsx'

interface DocumentLinkProps {
  readonly type: string
  readonly id: string
  /** `type/id` otherwise. */
  readonly text?: string
}

export function DocumentLink({ type, id, text = `${type}/${id}` }: DocumentLinkProps) {
  const settings = useQuery(queries.settings()).data
  const noun = settings?.types.find(({ name }) => name === type)
  if (noun?.cluster) return <ClusterLink cluster={id} text={text} />
  if (type === ROLLOUTS)
    return (
      <Link to="/rollouts/$rollout" params={{ rollout: id }}>
        {text}
      </Link>
    )
  // A read-only process has no catalog.
  if (!noun || noun.bookkeeping || settings?.mode !== 'crud') return text
  return (
    <Link to="/catalog/$type/$id" params={{ type, id }}>
      {text}
    </Link>
  )
}
