// The pages that the navigation, the palette and the shortcuts know: a page is one entry here and one route in router.tsx.
import type { Permission } from '../src/domain/access/permissions.ts'
import type { IconName } from './parts/icon.tsx'

export interface PageEntry {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  /** With `g` before it. */
  readonly key: string
  /** Who is offered it. */
  readonly needs: Permission
  /** Whether it needs routes that a read-only process does not have. */
  readonly needsDocuments?: boolean
}

export const PAGES: readonly PageEntry[] = [
  { path: '/', name: 'Home', icon: 'home', key: 'h', needs: 'read' },
  { path: '/fleet', name: 'Fleet', icon: 'fleet', key: 'f', needs: 'read' },
  { path: '/catalog', name: 'Catalog', icon: 'catalog', key: 'k', needs: 'read', needsDocuments: true },
  { path: '/rollouts', name: 'Rollouts', icon: 'rollouts', key: 'r', needs: 'read' },
  { path: '/changes', name: 'Changes', icon: 'changes', key: 'c', needs: 'read', needsDocuments: true },
  { path: '/access', name: 'Access', icon: 'access', key: 'a', needs: 'known' },
  { path: '/system', name: 'System', icon: 'system', key: 's', needs: 'known' },
]
