// The pages that this credential is offered on this service.
import { useQuery } from '@tanstack/react-query'
import { may } from '../../src/domain/access/permissions.ts'
import { queries } from '../api/queries.ts'
import { PAGES, type PageEntry } from '../pages.ts'
import { useHasDocuments } from '../session/permissions.ts'

export function usePages(): readonly PageEntry[] {
  const { data: identity } = useQuery(queries.whoami())
  const hasDocuments = useHasDocuments()
  if (!identity) return []
  return PAGES.filter((page) => may(identity, page.needs) && (hasDocuments || !page.needsDocuments))
}
