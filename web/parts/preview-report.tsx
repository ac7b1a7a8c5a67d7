// What a dry run found: how many clusters receive what differently, the changed fields, and warnings.
import { Alert, ScrollArea, Stack, Text } from '@mantine/core'
import type { Preview } from '../../src/api/wire-types.ts'
import { ChangedDocument } from './changed-document.tsx'
import { ImpactSummary } from './impact-summary.tsx'
import { PlannedWaves } from './planned-waves.tsx'

/** Changes to show; the count above says how many there are. */
const SHOWN = 20

export function PreviewReport({ preview }: { readonly preview: Preview }) {
  const { impact, change_count, changes, warnings, waves, expected_duration_s } = preview
  return (
    <Stack gap="sm">
      <Text size="sm">{summaryOf(preview)}</Text>
      <ImpactSummary impact={impact} />
      {waves && <PlannedWaves waves={waves} seconds={expected_duration_s ?? 0} />}
      {warnings.length > 0 && (
        <Alert color="orange" variant="outline" title={warnings.length === 1 ? 'Warning' : 'Warnings'}>
          {warnings.map((warning) => (
            <Text size="sm" key={warning}>
              {warning}
            </Text>
          ))}
        </Alert>
      )}
      <ScrollArea.Autosize
        mah="16rem"
        viewportProps={{ tabIndex: 0, role: 'region', 'aria-label': 'Changes' }}
      >
        <Stack gap="xs">
          {changes.slice(0, SHOWN).map((change) => (
            <ChangedDocument key={`${change.type}/${change.id}`} change={change} />
          ))}
          {change_count > SHOWN && (
            <Text size="xs" c="dimmed">
              and {change_count - SHOWN} more documents
            </Text>
          )}
        </Stack>
      </ScrollArea.Autosize>
    </Stack>
  )
}

function summaryOf({ change_count, impact }: Preview): string {
  if (change_count === 0) return 'This changes nothing: everything is as asked for already.'
  const documents = `${change_count} ${change_count === 1 ? 'document changes' : 'documents change'}`
  if (impact.clusters === 0) return `${documents}; no cluster receives anything differently.`
  const clusters = impact.clusters === 1 ? '1 cluster receives' : `${impact.clusters} clusters receive`
  const effects = [
    [impact.joining, 'new in the fleet'],
    [impact.losing, 'losing an input or having one switched off'],
    [impact.leaving, 'leaving the fleet: Flux removes there everything that it rendered'],
  ] as const
  const named = effects.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`)
  return `${documents}; ${clusters} something different${named.length > 0 ? ` (${named.join('; ')})` : ''}.`
}
