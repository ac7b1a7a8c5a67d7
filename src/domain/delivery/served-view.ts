// What one cluster is served: the only way from a view to what is rendered.
import type { View } from '../documents/view.ts'

declare const SERVED: unique symbol

/** A view as one cluster is served it. Renderers take no other view, so none of their callers can forget `servedTo`. */
export type ServedView = View & { readonly [SERVED]: true }

/**
 * Returns the view that a cluster is rendered from, its own document included. Today that is the view itself, for every
 * cluster. Every poll calls it: it must not allocate.
 */
export function servedTo(view: View, _cluster: string): ServedView {
  return view as ServedView
}

export type ServedTo = typeof servedTo
