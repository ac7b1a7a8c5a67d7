// A box for JSON that says where it is none; its editor is loaded when the first box opens.
import { Input, Skeleton } from '@mantine/core'
import { lazy, Suspense, useId } from 'react'
import type { Json } from '../../src/base/json.ts'

const CodeEditor = lazy(async () => ({ default: (await import('./code-editor.tsx')).CodeEditor }))

interface JsonBoxProps {
  readonly label: string
  readonly description?: string
  readonly value: string
  readonly onChange: (text: string) => void
  readonly minRows?: number
}

const LINE_PX = 20

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
  const id = useId()
  const parsed = parseJsonText(value)
  return (
    <Input.Wrapper
      label={label}
      labelElement="div"
      {...(description !== undefined && { description })}
      descriptionProps={{ id: `${id}-description` }}
    >
      <Suspense
        fallback={<Skeleton height={minRows * LINE_PX} role="status" aria-label={`Loading ${label}`} />}
      >
        <CodeEditor
          label={label}
          describedBy={`${id}-description`}
          value={value}
          problem={parsed.ok || value.trim() === '' ? undefined : parsed.message}
          minRows={minRows}
          onChange={onChange}
        />
      </Suspense>
    </Input.Wrapper>
  )
}
