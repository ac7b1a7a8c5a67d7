// The way to one change.
import { Link } from '@tanstack/react-router'

export function RevisionLink({ revision }: { readonly revision: number }) {
  return (
    <Link to="/changes/$revision" params={{ revision: String(revision) }}>
      #{revision}
    </Link>
  )
}
