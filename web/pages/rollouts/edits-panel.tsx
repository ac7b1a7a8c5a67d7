// What a rollout changes: fields of documents, as they are without it and as they are to be.
import { Stack, Text } from '@mantine/core'
import { SHOWN_EDITS, type ShownEdit } from '../../../src/api/rollout-schema.ts'
import { FieldChanges } from '../../parts/changed-document.tsx'
import { DocumentLink } from '../../parts/document-link.tsx'
import { Panel } from '../../parts/page.tsx'

const NAMED = 5

export function EditsPanel({ edits }: { readonly edits: readonly ShownEdit[] }) {
  return (
    <Panel title="What it changes">
      <Stack gap="xs" p="sm">
        {edits.map((edit) => (
          <div key={`${edit.type} ${edit.ids[0]}`}>
            <Text size="xs" fw={600}>
              {edit.op} <Names edit={edit} />
            </Text>
            <FieldChanges fields={edit.fields} />
          </div>
        ))}
        {edits.length === SHOWN_EDITS && (
          <Text size="xs" c="dimmed">
            the first {SHOWN_EDITS} edits
          </Text>
        )}
      </Stack>
    </Panel>
  )
}

function Names({ edit: { type, ids, documents, op } }: { readonly edit: ShownEdit }) {
  const shown = ids.slice(0, NAMED)
  return (
    <>
      {type}:{' '}
      {shown.map((id) => (
        <span key={id}>{op === 'create' ? id : <DocumentLink type={type} id={id} text={id} />} </span>
      ))}
      {documents > shown.length && `and ${documents - shown.length} more`}
    </>
  )
}
