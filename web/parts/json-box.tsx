// A box for JSON that says where it is none.
import { Textarea } from '@mantine/core'
import type { Json } from '../../src/base/json.ts'
import classes from './json-box.module.css'

interface JsonBoxProps {
  readonly label: string
  readonly description?: string
  readonly value: string
  readonly onChange: (text: string) => void
  readonly minRows?: number
}

/** The text as JSON, or why it is none. */
export function parseJsonText(
  text: string,
): { readonly ok: true; readonly value: Json } | { readonly ok: false; readonly message: string } {
  try {
    return { ok: true, value: JSON.parse(text) as Json }
  } catch (error) {
    return { ok: false, message: `is not JSON: ${(error as Error).message}` }
  }
}

export function JsonBox({ label, description, value, onChange, minRows = 8 }: JsonBoxProps) {
  const parsed = parseJsonText(value)
  return (
    <Textarea
      label={label}
      {...(description !== undefined && { description })}
      value={value}
      onChange={({ currentTarget }) => onChange(currentTarget.value)}
      error={parsed.ok ? undefined : parsed.message}
      autosize
      minRows={minRows}
      maxRows={24}
      classNames={{ input: classes.input ?? '' }}
      spellCheck={false}
    />
  )
}
