// What a rollout changes: fields of documents, as they are without it and as they are to be.
import { Stack, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { SHOWN_EDITS, type ShownEdit } from '../../../src/api/rollout-schema.ts'
import { queries } from '../../api/queries.ts'
import { FieldChanges } from '../../parts/changed-document.tsx'
import { ClusterLink } from '../../parts/cluster-link.tsx'
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

function Names({ edit: { type, ids, documents } }: { readonly edit: ShownEdit }) {
  const settings = useQuery(queries.settings()).data
  const clusters = settings?.types.find(({ cluster }) => cluster)?.name
  const shown = ids.slice(0, NAMED)
  return (
    <>
      {type}:{' '}
      {shown.map((id) => (
        <span key={id}>
          {type === clusters ? (
            <ClusterLink cluster={id} />
          ) : settings?.mode === 'crud' ? (
            <Link to="/catalog/$type/$id" params={{ type, id }}>
              {id}
            </Link>
          ) : (
            id
          )}{' '}
        </span>
      ))}
      {documents > shown.length && `and ${documents - shown.length} more`}
    </>
  )
}
