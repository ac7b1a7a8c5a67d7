// What the cluster sets itself instead of taking it from the catalog: overrides and values of each definition it has.
import { Badge, Button, Code, Group } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Noun } from '../../../src/api/noun.ts'
import { isObject, type Json, type JsonObject } from '../../../src/base/json.ts'
import { queries } from '../../api/queries.ts'
import { Facts } from '../../parts/facts.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Empty, Panel } from '../../parts/page.tsx'
import { useMay } from '../../session/permissions.ts'
import { OwnValuesEditor } from './own-values-editor.tsx'

/** A definition that the cluster has, with what it sets itself of it. */
export interface OwnValues {
  /** The type of the definition. */
  readonly noun: Noun
  readonly id: string
  readonly overrides: JsonObject
  /** Undefined where its type takes none. */
  readonly values: JsonObject | undefined
}

export function OwnValuesPanel({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const settings = useQuery(queries.settings())
  const query = useQuery(queries.document(type, cluster))
  const mayWrite = useMay('write')
  const [edited, setEdited] = useState<string>()
  const nouns = settings.data?.types ?? []
  const patches = nouns.find((noun) => noun.cluster)?.cluster?.patches ?? 'patches'
  return (
    <Panel title="Own values">
      <Loaded query={query}>
        {({ body, etag }) => {
          const all = nouns.flatMap((noun) => ownValuesOf(noun, body, patches))
          const chosen = all.find((each) => keyOf(each) === edited)
          if (all.length === 0)
            return (
              <Empty title="It is assigned nothing yet">
                Assigned components may have values of their own.
              </Empty>
            )
          return (
            <>
              <Facts
                label="Own values"
                head={['Definition', 'Overrides', 'Values', '']}
                rows={all.map((own) => ({
                  id: keyOf(own),
                  cells: [
                    keyOf(own),
                    <Words key="overrides" of={own.overrides} />,
                    own.values ? <Words key="values" of={own.values} /> : 'takes none',
                    mayWrite && (
                      <Button
                        key="edit"
                        variant="default"
                        size="compact-xs"
                        aria-label={`Edit ${keyOf(own)}`}
                        onClick={() => setEdited(keyOf(own))}
                      >
                        Edit
                      </Button>
                    ),
                  ],
                }))}
              />
              {chosen && mayWrite && (
                <OwnValuesEditor
                  key={edited}
                  document={{ type, id: cluster, base: body }}
                  etag={etag}
                  own={chosen}
                  patches={patches}
                  onClose={() => setEdited(undefined)}
                />
              )}
            </>
          )
        }}
      </Loaded>
    </Panel>
  )
}

function keyOf({ noun, id }: OwnValues): string {
  return `${noun.name}/${id}`
}

function ownValuesOf(noun: Noun, document: JsonObject, patches: string): OwnValues[] {
  if (!noun.delivery) return []
  const references = document[noun.delivery.assigned_by]
  if (!Array.isArray(references)) return []
  const hasValues = noun.delivery.patches
  return references.filter(isObject).map(({ id, ...overrides }) => {
    const all = document[patches]
    const values = isObject(all) ? all[String(id)] : undefined
    const shown = hasValues ? (isObject(values) ? values : {}) : undefined
    return { noun, id: String(id), overrides, values: shown }
  })
}

function Words({ of }: { readonly of: JsonObject }) {
  const entries = Object.entries(of)
  if (entries.length === 0) return 'as in the catalog'
  return (
    <Group gap={4}>
      {entries.map(([field, value]) => (
        <Badge key={field} variant="default" radius="sm" fw={400} maw={320}>
          <Code bg="transparent">
            {field}={wordOf(value)}
          </Code>
        </Badge>
      ))}
    </Group>
  )
}

function wordOf(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
