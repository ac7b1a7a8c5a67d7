// How one schema of the API's description refers to another.

/** By its name among the components. */
export function ref(name: string): { readonly $ref: string } {
  return { $ref: `#/components/schemas/${name}` }
}
