// Types as tools need them beside their routes: how each is called, what it looks like, how it reaches clusters.
import type { Noun } from '../api/noun.ts'
import type { RegisteredType, RegisteredTypes } from './build-types.ts'
import { fluxOf } from './flux-section.ts'

export function describeTypes(types: RegisteredTypes): Noun[] {
  return types.all.map((type) => describeType(types, type))
}

function describeType({ cluster }: RegisteredTypes, type: RegisteredType): Noun {
  const { name, singular, noun, file, filters, methods, delivery, references, schema } = type
  const { dns, patches, labels, environment } = cluster
  return {
    name,
    singular,
    noun,
    description: file.metadata?.description ?? name,
    bookkeeping: fluxOf(file).bookkeeping ?? false,
    schema,
    filters: filters.map((filter) => filter.name),
    methods: ['get', ...methods],
    references: Object.fromEntries(references.map(({ field, type }) => [field, type])),
    ...(type === cluster.type && {
      cluster: {
        dns,
        patches,
        ...(labels !== undefined && { labels }),
        ...(environment !== undefined && { environment }),
      },
    }),
    ...(delivery && {
      delivery: {
        endpoint: delivery.endpoint,
        assigned_by: delivery.assignedBy,
        patches: delivery.patches,
        ...(delivery.versionField && { versions: true }),
        ...(delivery.enabledBy !== undefined && { enabled_by: delivery.enabledBy }),
        reference: type.referenceSchema ?? {},
      },
    }),
  }
}
