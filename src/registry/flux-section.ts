// What the `x-flux` part of a resource file says, with what holds where it says nothing.
import type { InputField } from '../domain/types/resource-type.ts'
import type { FluxSection, ResourceFile } from './resource-file.ts'

export function fluxOf(file: ResourceFile): FluxSection {
  return file.schema['x-flux'] ?? {}
}

export function singularOf(file: ResourceFile): string {
  return fluxOf(file).singular ?? file.kind.replaceAll('_', ' ').replace(/s$/, '')
}

export function nounOf(file: ResourceFile): string {
  return fluxOf(file).noun ?? singularOf(file).replaceAll(' ', '-')
}

/** `cluster` is always a part of an input. */
export function inputFields(flux: FluxSection): InputField[] {
  const fields = (flux.input ?? []).map((field): InputField => {
    if (field === 'cluster' || field === 'patches') return { kind: field, name: field }
    if (typeof field === 'string') return { kind: 'value', name: field, source: field }
    const [name, sources] = Object.entries(field)[0] as [string, readonly string[]]
    return { kind: 'group', name, sources }
  })
  const complete = fields.some(({ kind }) => kind === 'cluster')
  return complete ? fields : [...fields, { kind: 'cluster', name: 'cluster' }]
}
