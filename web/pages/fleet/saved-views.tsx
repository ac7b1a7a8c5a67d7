// Views of the fleet that somebody saved under a name, and the favourites: both are links as any other filter.
import { ActionIcon, Button, Group, Popover, Stack, Text, TextInput } from '@mantine/core'
import { Link } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import type { FleetFilter } from '../../api/queries.ts'
import { favourites, type SavedView, savedViews } from './kept-views.ts'

export function SavedViews({ filter }: { readonly filter: FleetFilter }) {
  const [isOpen, setOpen] = useState(false)
  const views = savedViews.use()
  const chosen = favourites.use()
  const close = () => setOpen(false)
  const all: readonly SavedView[] =
    chosen.length === 0
      ? views
      : [{ name: 'Favourites', filter: { selector: `id in (${chosen.join(',')})` } }, ...views]
  return (
    <Popover
      opened={isOpen}
      onChange={setOpen}
      position="bottom-end"
      withArrow
      shadow="md"
      width={280}
      trapFocus
    >
      <Popover.Target>
        <Button variant="default" onClick={() => setOpen(!isOpen)}>
          Views
        </Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Saved views">
        <Stack gap="sm">
          {all.length === 0 && (
            <Text size="sm" c="dimmed">
              None yet. A star beside a cluster makes it a favourite.
            </Text>
          )}
          {all.map((view) => (
            <Group key={view.name} justify="space-between" wrap="nowrap">
              <Link to="/fleet" search={view.filter} onClick={close}>
                {view.name}
              </Link>
              {views.includes(view) && (
                <ActionIcon
                  variant="subtle"
                  aria-label={`Forget ${view.name}`}
                  onClick={() => savedViews.set(views.filter((other) => other !== view))}
                >
                  ×
                </ActionIcon>
              )}
            </Group>
          ))}
          <SaveForm filter={filter} views={views} onSaved={close} />
          <Text size="xs" c="dimmed">
            Views and favourites are kept in this browser. To share one, send its address.
          </Text>
        </Stack>
      </Popover.Dropdown>
    </Popover>
  )
}

interface SaveFormProps {
  readonly filter: FleetFilter
  readonly views: readonly SavedView[]
  readonly onSaved: () => void
}

/** A name that there is gets the filter of now. */
function SaveForm({ filter, views, onSaved }: SaveFormProps) {
  const [name, setName] = useState('')
  const save = (event: FormEvent): void => {
    event.preventDefault()
    const others = views.filter((view) => view.name !== name.trim())
    savedViews.set([...others, { name: name.trim(), filter }])
    setName('')
    onSaved()
  }
  return (
    <form onSubmit={save}>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <TextInput
          label="Save this view as"
          value={name}
          onChange={({ currentTarget }) => setName(currentTarget.value)}
          maxLength={60}
        />
        <Button type="submit" h={36} disabled={name.trim() === ''}>
          Save
        </Button>
      </Group>
    </form>
  )
}
