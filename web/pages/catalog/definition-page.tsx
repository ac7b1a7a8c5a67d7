// One definition: its values, which versions of it are where, who has it, what changed it, and its edit with a preview.
import { Button, Group, SimpleGrid } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import type { Noun } from '../../../src/api/noun.ts'
import { pathOf } from '../../api/client.ts'
import { queries } from '../../api/queries.ts'
import { CopyAs, inShell } from '../../parts/copy-as.tsx'
import { DocumentPanel } from '../../parts/document-panel.tsx'
import { HistoryPanel } from '../../parts/history-panel.tsx'
import { Empty, Page } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { useMay } from '../../session/permissions.ts'
import { AssignedPanel } from './assigned-panel.tsx'
import { DefinitionForm } from './definition-form.tsx'
import { VersionMatrix } from './version-matrix.tsx'

const route = getRouteApi('/catalog/$type/$id')

export function DefinitionPage() {
  const { type, id } = route.useParams()
  const settings = useQuery(queries.settings())
  const noun = settings.data?.types.find(({ name }) => name === type)
  const [isEditing, setEditing] = useState(false)
  if (settings.data && !noun)
    return (
      <Page title={id}>
        <Empty title={`There is no type ${type} here`} />
      </Page>
    )
  if (!noun) return null
  return (
    <Page
      title={id}
      aside={<span>{noun.singular}</span>}
      actions={
        <>
          <CopyAs
            call={{ method: 'GET', path: pathOf(type, id) }}
            cli={`${noun.noun} describe ${inShell(id)}`}
          />
          <Changing noun={noun} id={id} onEdit={() => setEditing(true)} />
        </>
      }
    >
      {isEditing && <DefinitionForm noun={noun} id={id} onClose={() => setEditing(false)} />}
      {noun.delivery?.versions && <VersionMatrix type={type} id={id} />}
      {noun.delivery && <AssignedPanel type={type} id={id} />}
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <DocumentPanel type={type} id={id} />
        <HistoryPanel filter={{ type, id }} />
      </SimpleGrid>
    </Page>
  )
}

interface ChangingProps {
  readonly noun: Noun
  readonly id: string
  readonly onEdit: () => void
}

function Changing({ noun, id, onEdit }: ChangingProps) {
  const { name: type, noun: word, methods = ['patch', 'delete'] } = noun
  const mayWrite = useMay('write')
  const navigate = useNavigate()
  const document = useQuery(queries.document(type, id))
  const [action, setAction] = useState<Action>()
  if (!mayWrite || !document.data) return null
  const { etag } = document.data
  const remove: Action = {
    title: `Delete ${noun.singular} ${id}`,
    verb: 'Delete',
    call: { method: 'DELETE', path: pathOf(type, id), ifMatch: etag },
    cli: `${word} delete ${inShell(id)}`,
    isDestructive: true,
  }
  return (
    <Group gap="xs">
      {methods.includes('patch') && <Button onClick={onEdit}>Edit…</Button>}
      {noun.delivery && methods.includes('patch') && (
        <Button
          variant="default"
          renderRoot={(props) => <Link to="/rollouts/new" search={{ type, id }} {...props} />}
        >
          Roll a change out…
        </Button>
      )}
      {methods.includes('delete') && (
        <Button variant="default" onClick={() => setAction(remove)}>
          Delete…
        </Button>
      )}
      <PreviewDialog
        action={action}
        onClose={() => setAction(undefined)}
        onDone={() => void navigate({ to: '/catalog', search: { type } })}
      />
    </Group>
  )
}
