// The part of JSON Schema that resource files use.

/** A JSON Schema, as far as we read it. */
export type SchemaObject = { readonly [key: string]: unknown } & {
  readonly type?: string | readonly string[]
  readonly properties?: { readonly [name: string]: SchemaObject }
  readonly required?: readonly string[]
  readonly items?: SchemaObject
  readonly additionalProperties?: boolean | SchemaObject
  readonly default?: unknown
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly format?: string
}
