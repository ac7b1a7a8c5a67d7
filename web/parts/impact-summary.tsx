// How many clusters receive what differently: by environment, and by input.
import { Badge, Code, Group, List } from '@mantine/core'
import type { Impact } from '../../src/domain/delivery/impact.ts'

const SHOWN = 20

export function ImpactSummary({ impact }: { readonly impact: Impact }) {
  const rest = impact.input_count - Math.min(SHOWN, impact.inputs.length)
  return (
    <>
      {Object.keys(impact.by_environment).length > 0 && (
        <Group gap={6}>
          {Object.entries(impact.by_environment).map(([environment, count]) => (
            <Badge key={environment} color="gray" variant="default">
              {environment} {count}
            </Badge>
          ))}
        </Group>
      )}
      {impact.inputs.length > 0 && (
        <List size="sm" spacing={2}>
          {impact.inputs.slice(0, SHOWN).map(({ endpoint, id, added, removed, changed }) => (
            <List.Item key={`${endpoint}/${id}`}>
              <Code>{id}</Code> {effectOf({ added, removed, changed })}
            </List.Item>
          ))}
          {rest > 0 && <List.Item>and {rest} more</List.Item>}
        </List>
      )}
    </>
  )
}

function effectOf(counts: Readonly<Record<'added' | 'removed' | 'changed', number>>): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
  return parts.map(([what, count]) => `${what} on ${count}`).join(', ')
}
