// Edits what a cluster sets itself of one definition; written as a patch of its document, if that is still what was looked at.
import { Button, Group, Stack } from '@mantine/core'
import { useState } from 'react'
import { isObject, type Json, type JsonObject } from '../../../src/base/json.ts'
import { mergePatch } from '../../../src/base/merge-patch.ts'
import { pathOf } from '../../api/client.ts'
import { patchOf } from '../../api/patch-of.ts'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import type { OwnValues } from './own-values-panel.tsx'

interface OwnValuesEditorProps {
  readonly document: { readonly type: string; readonly id: string; readonly base: JsonObject }
  readonly etag: string | undefined
  readonly own: OwnValues
  /** The field of the document that holds values. */
  readonly patches: string
  readonly onClose: () => void
}

export function OwnValuesEditor(props: OwnValuesEditorProps) {
  // What was looked at stays while it is edited: what others write meanwhile is told when it is written.
  const [{ document, etag, own, patches }] = useState(props)
  const [overrides, setOverrides] = useState(JSON.stringify(own.overrides, null, 2))
  const [values, setValues] = useState(JSON.stringify(own.values ?? {}, null, 2))
  const [action, setAction] = useState<Action>()
  const { delivery } = own.noun
  const fields = Object.keys(delivery?.reference.properties ?? {}).filter((name) => name !== 'id')
  const wanted = [objectIn(overrides), objectIn(values)] as const
  const preview = () => {
    const [overridden, valued] = wanted
    if (!overridden || !valued) return
    const mine = changed(document.base, own, patches, overridden, valued)
    const path = pathOf(document.type, document.id)
    setAction({
      title: `Own values of ${document.id} for ${own.id}`,
      verb: 'Save',
      call: { method: 'PATCH', path, body: patchOf(document.base, mine), ifMatch: etag },
      edited: { ...document, mine },
    })
  }
  return (
    <Stack gap="sm" p="sm">
      <JsonBox
        label={`Overrides of ${own.id}`}
        description={`Fields of the definition that this cluster sets itself: ${fields.join(', ')}.`}
        value={overrides}
        onChange={setOverrides}
        minRows={4}
      />
      {own.values && (
        <JsonBox
          label={`Values of ${own.id}`}
          description="By path, each a text. Not for secrets."
          value={values}
          onChange={setValues}
          minRows={4}
        />
      )}
      <Group gap="xs">
        <Button onClick={preview} disabled={!wanted[0] || !wanted[1]}>
          Preview…
        </Button>
        <Button variant="default" onClick={props.onClose}>
          Close
        </Button>
      </Group>
      <PreviewDialog action={action} onClose={() => setAction(undefined)} onDone={props.onClose} />
    </Stack>
  )
}

function objectIn(text: string): JsonObject | undefined {
  const parsed = parseJsonText(text)
  return parsed.ok && isObject(parsed.value) ? parsed.value : undefined
}

/** The document with these overrides and values of one definition. */
function changed(
  base: JsonObject,
  { noun, id, values: takesValues }: OwnValues,
  patches: string,
  overrides: JsonObject,
  values: JsonObject,
): JsonObject {
  const list = noun.delivery?.assigned_by ?? ''
  const references = (base[list] as readonly JsonObject[]).map((each) =>
    each.id === id ? { id, ...overrides } : each,
  )
  const hasNone = Object.keys(values).length === 0
  const patch: Json = takesValues ? { [patches]: { [id]: null } } : {}
  const without = mergePatch({ ...base, [list]: references }, patch) as JsonObject
  return hasNone ? without : (mergePatch(without, { [patches]: { [id]: values } }) as JsonObject)
}
