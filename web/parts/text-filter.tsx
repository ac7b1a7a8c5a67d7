// A filter that somebody types: it counts with Enter, or when the box is left.
import { TextInput } from '@mantine/core'
import { useEffect, useState } from 'react'

interface TextFilterProps {
  readonly label: string
  readonly value: string | undefined
  readonly placeholder?: string
  readonly error?: string | undefined
  readonly onChange: (value: string | undefined) => void
}

export function TextFilter({ label, value = '', placeholder, error, onChange }: TextFilterProps) {
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  const commit = (): void => {
    if (typed.trim() !== value) onChange(typed.trim() || undefined)
  }
  return (
    <TextInput
      label={label}
      value={typed}
      error={error}
      onChange={({ currentTarget }) => setTyped(currentTarget.value)}
      onBlur={commit}
      onKeyDown={({ key }) => key === 'Enter' && commit()}
      {...(placeholder !== undefined && { placeholder })}
      spellCheck={false}
    />
  )
}
