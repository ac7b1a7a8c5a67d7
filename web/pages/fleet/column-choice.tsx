// Which columns of the fleet this browser shows; the name of a cluster always stands there.
import { Button, Checkbox, Popover, Stack } from '@mantine/core'
import { CHOOSABLE } from './fleet-columns.tsx'
import { hiddenColumns } from './kept-views.ts'

export function ColumnChoice() {
  const hidden = hiddenColumns.use()
  const columns = Object.entries(CHOOSABLE)
  return (
    <Popover position="bottom-end" withArrow shadow="md" trapFocus>
      <Popover.Target>
        <Button variant="default">Columns</Button>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns">
        <Checkbox.Group
          value={columns.map(([id]) => id).filter((id) => !hidden.includes(id))}
          onChange={(shown) =>
            hiddenColumns.set(columns.map(([id]) => id).filter((id) => !shown.includes(id)))
          }
        >
          <Stack gap="xs">
            {columns.map(([id, name]) => (
              <Checkbox key={id} value={id} label={name} />
            ))}
          </Stack>
        </Checkbox.Group>
      </Popover.Dropdown>
    </Popover>
  )
}
