// What a dry run found: how many clusters receive what differently, the changed fields, and warnings.
import { Alert, Badge, Code, Group, List, ScrollArea, Stack, Text } from '@mantine/core'
import type { Preview } from '../../src/api/wire-types.ts'
import { diffFields } from '../../src/base/diff.ts'
import type { Json } from '../../src/base/json.ts'
import type { DescribedChange } from '../../src/domain/documents/describe-change.ts'
import classes from './preview-report.module.css'

/** Changes to show; the count above says how many there are. */
const SHOWN = 20

export function PreviewReport({ preview }: { readonly preview: Preview }) {
  const { impact, change_count, changes, warnings } = preview
  return (
    <Stack gap="sm">
      <Text size="sm">{summaryOf(preview)}</Text>
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
        </List>
      )}
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

function effectOf(counts: {
  readonly added: number
  readonly removed: number
  readonly changed: number
}): string {
  const parts = Object.entries(counts).filter(([, count]) => count > 0)
  return parts.map(([what, count]) => `${what} on ${count}`).join(', ')
}

/** A document with the fields that change. */
function ChangedDocument({ change }: { readonly change: DescribedChange }) {
  const { type, id, op, before, after } = change
  return (
    <div className={classes.document}>
      <Text size="xs" fw={600}>
        {op} {type}/{id}
      </Text>
      {op === 'update' &&
        diffFields(before ?? undefined, after ?? undefined).map((field) => (
          <div key={field.path} className={classes.field}>
            <Code>{field.path}</Code>
            <Value value={field.before} kind="before" />
            <Value value={field.after} kind="after" />
          </div>
        ))}
    </div>
  )
}

function Value({ value, kind }: { readonly value: Json; readonly kind: 'before' | 'after' }) {
  return (
    <code className={classes.value} data-kind={kind}>
      <span className="visually-hidden">{kind} </span>
      {value === null ? 'none' : JSON.stringify(value)}
    </code>
  )
}
