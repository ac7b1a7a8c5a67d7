// A changed document field by field: what stood there, and what does now.
import { Code, Text } from '@mantine/core'
import { diffFields, type FieldChange } from '../../src/base/diff.ts'
import type { Json } from '../../src/base/json.ts'
import type { DescribedChange } from '../../src/domain/documents/describe-change.ts'
import classes from './changed-document.module.css'
import { DocumentLink } from './document-link.tsx'

export function ChangedDocument({ change }: { readonly change: DescribedChange }) {
  const { type, id, op, before, after } = change
  return (
    <div className={classes.document}>
      <Text size="xs" fw={600}>
        {op} {op === 'delete' || op === 'purge' ? `${type}/${id}` : <DocumentLink type={type} id={id} />}
      </Text>
      {op === 'update' && <FieldChanges fields={diffFields(before ?? undefined, after ?? undefined)} />}
    </div>
  )
}

export function FieldChanges({ fields }: { readonly fields: readonly FieldChange[] }) {
  return fields.map((field) => (
    <div key={field.path} className={classes.field}>
      <Code>{field.path}</Code>
      <FieldValue value={field.before} kind="before" />
      <FieldValue value={field.after} kind="after" />
    </div>
  ))
}

interface FieldValueProps {
  readonly value: Json
  readonly kind: 'before' | 'after'
}

function FieldValue({ value, kind }: FieldValueProps) {
  return (
    <code className={classes.value} data-kind={kind}>
      <span className="visually-hidden">{kind} </span>
      {value === null ? 'none' : JSON.stringify(value)}
    </code>
  )
}
