// How one schema of the API's description refers to another.

/** Refers to a schema by its name among the components. */
export function ref(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}
