// A document as JSON to edit: what differs becomes a patch, so that nothing else is written.
import { Autocomplete, Group, Select, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { useState } from 'react'
import { diffFields } from '../../../src/base/diff.ts'
import { isObject, type JsonObject } from '../../../src/base/json.ts'
import { patchOf } from '../../api/patch-of.ts'
import { queries } from '../../api/queries.ts'
import { FieldChanges } from '../../parts/changed-document.tsx'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import type { OnOperations } from './start-page.tsx'

/** Ids to choose from; of clusters, which are many, one types the id. */
const COMPLETIONS = 1000
const route = getRouteApi('/rollouts/new')

export function DocumentChange({ onOperations }: { readonly onOperations: OnOperations }) {
  const { type = '', id = '', ...others } = route.useSearch()
  const navigate = route.useNavigate()
  const settings = useQuery(queries.settings())
  const types = settings.data?.types.filter(
    ({ bookkeeping, methods }) => !bookkeeping && (methods?.includes('patch') ?? true),
  )
  const [typed, setTyped] = useState(id)
  const isDefinition = types?.some(({ name, cluster }) => name === type && !cluster) ?? false
  const list = useQuery({
    ...queries.documents(type, { offset: 0, limit: COMPLETIONS }),
    enabled: isDefinition,
  })
  const choose = (next: { type?: string; id?: string }) => {
    onOperations(undefined)
    void navigate({ search: { ...others, type, id, ...next } })
  }
  return (
    <>
      <Group gap="sm" align="flex-end">
        <Select
          label="Type"
          data={types?.map(({ name }) => name) ?? []}
          value={type || null}
          onChange={(name) => {
            setTyped('')
            choose({ type: name ?? '', id: '' })
          }}
          size="sm"
        />
        <Autocomplete
          label="Document"
          placeholder="its id, then Enter"
          value={typed}
          onChange={setTyped}
          onOptionSubmit={(chosen) => choose({ id: chosen })}
          onKeyDown={({ key }) => key === 'Enter' && choose({ id: typed.trim() })}
          data={isDefinition ? (list.data?.body.map((document) => String(document.id)) ?? []) : []}
          limit={20}
          disabled={type === ''}
          size="sm"
        />
      </Group>
      {type !== '' && id !== '' && (
        <Editor key={`${type}/${id}`} type={type} id={id} onOperations={onOperations} />
      )}
    </>
  )
}

interface EditorProps {
  readonly type: string
  readonly id: string
  readonly onOperations: OnOperations
}

function Editor({ type, id, onOperations }: EditorProps) {
  const query = useQuery(queries.document(type, id))
  // What was looked at stays: if somebody changes it meanwhile, the batch is refused and says so.
  const [edited, setEdited] = useState<{ text: string; base: JsonObject; etag: string | undefined }>()
  const change = (text: string, base: JsonObject, etag: string | undefined) => {
    setEdited({ text, base, etag })
    const parsed = parseJsonText(text)
    const isChanged = parsed.ok && isObject(parsed.value) && diffFields(base, parsed.value).length > 0
    onOperations(isChanged ? [operationOf({ type, id }, base, parsed.value as JsonObject, etag)] : undefined)
  }
  return (
    <Loaded query={query} lines={8}>
      {({ body, etag }) => {
        const shown = edited ?? { text: JSON.stringify(body, null, 2), base: body, etag }
        const parsed = parseJsonText(shown.text)
        const fields = parsed.ok ? diffFields(shown.base, parsed.value) : []
        return (
          <>
            <JsonBox
              label={`${type}/${id}`}
              description="Change what is to be rolled out; a field that is taken away is removed."
              value={shown.text}
              onChange={(text) => change(text, shown.base, shown.etag)}
            />
            {fields.length > 0 ? (
              <div>
                <FieldChanges fields={fields} />
              </div>
            ) : (
              <Text size="xs" c="dimmed">
                no difference yet
              </Text>
            )}
          </>
        )
      }}
    </Loaded>
  )
}

function operationOf(
  document: { readonly type: string; readonly id: string },
  base: JsonObject,
  wanted: JsonObject,
  etag: string | undefined,
): JsonObject {
  const revision = Number(etag?.replaceAll('"', ''))
  return {
    op: 'patch',
    ...document,
    patch: patchOf(base, wanted),
    ...(Number.isInteger(revision) && revision > 0 && { if_revision: revision }),
  }
}
