// What the catalog shows, in the URL: a type, and a part of the ids.
export interface CatalogSearch {
  readonly type?: string
  readonly q?: string
}

export function parseCatalogSearch({ type, q }: Readonly<Record<string, unknown>>): CatalogSearch {
  return { ...(type ? { type: String(type) } : {}), ...(q ? { q: String(q) } : {}) }
}
