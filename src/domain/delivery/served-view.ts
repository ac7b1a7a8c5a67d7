// What one cluster is served: the only way from a view to what is rendered.
import type { View } from '../documents/view.ts'
import { stagingOf } from '../rollouts/staging.ts'
import type { Types } from '../types/resource-type.ts'

declare const SERVED: unique symbol

/** A view as one cluster is served it. Renderers take no other view, so none of their callers can forget `servedTo`. */
export type ServedView = View & { readonly [SERVED]: true }

/**
 * Returns the view that a cluster is rendered from, its own document included: the view itself, the view with the edits
 * of the rollouts that are open for the cluster, or what it is held at. Every poll calls it: it must not allocate.
 */
export function servedTo(types: Types, view: View, cluster: string): ServedView {
  return stagingOf(types, view).viewFor(cluster) as ServedView
}

export type ServedTo = typeof servedTo
