// The box for selectors, with completion of keys; the service says what is wrong with one, and nothing is guessed.
import { Autocomplete, Text } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { ConsoleSettings } from '../../src/api/console-settings.ts'
import { CONTACTS, DELIVERIES, HEALTHS } from '../../src/domain/status/status-words.ts'
import { ApiProblem } from '../api/client.ts'
import { queries } from '../api/queries.ts'

interface SelectorBoxProps {
  readonly value: string
  /** Of the request with this selector. */
  readonly error: unknown
  readonly onChange: (selector: string) => void
  readonly placeholder?: string
}

const EXAMPLE = 'environment in (dev,qa), region=eu, health=failed'

/** What is typed counts with Enter, or when the box is left. */
export function SelectorBox({ value, error, onChange, placeholder = EXAMPLE }: SelectorBoxProps) {
  const settings = useQuery(queries.settings())
  const [typed, setTyped] = useState(value)
  useEffect(() => setTyped(value), [value])
  const commit = (): void => {
    if (typed.trim() !== value) onChange(typed.trim())
  }
  const refusal =
    error instanceof ApiProblem && error.status === 400
      ? (error.body.details?.find(({ path }) => path === '?selector')?.message ?? error.message)
      : undefined
  return (
    <Autocomplete
      aria-label="Selector"
      placeholder={placeholder}
      value={typed}
      onChange={setTyped}
      onBlur={commit}
      onKeyDown={({ key }) => key === 'Enter' && commit()}
      data={completionsOf(typed, settings.data)}
      filter={({ options }) => options}
      selectFirstOptionOnChange={false}
      error={refusal && <Text size="xs">{refusal}</Text>}
      spellCheck={false}
      flex="1 1 20rem"
      maw={560}
      ff="monospace"
    />
  )
}

/** The whole text with its last requirement completed. */
function completionsOf(typed: string, settings: ConsoleSettings | undefined): string[] {
  const [, before = '', last = ''] = /^((?:.*,\s*(?![^(]*\)))?)(.*)$/.exec(typed) ?? []
  if (last === '' && typed === '') return []
  return requirementsOf(settings)
    .filter((each) => each.startsWith(last) && each !== last)
    .slice(0, 12)
    .map((each) => before + each)
}

function requirementsOf(settings: ConsoleSettings | undefined): string[] {
  const clusters = settings?.types.find(({ cluster }) => cluster)
  const properties = (clusters?.schema.properties ?? {}) as Readonly<
    Record<string, { readonly enum?: readonly unknown[] }>
  >
  const own = Object.entries(properties).flatMap(
    ([name, { enum: words }]) => words?.map((word) => `${name}=${word}`) ?? [],
  )
  const assigned = settings?.types.flatMap(({ delivery }) => delivery?.assigned_by ?? []) ?? []
  return [
    ...own,
    ...words('contact', CONTACTS),
    ...words('delivery', DELIVERIES),
    ...words('health', HEALTHS),
    'operator_version<',
    ...assigned.flatMap((list) => [`uses.${list}=`, `overrides.${list}=`]),
  ]
}

function words(key: string, all: readonly string[]): string[] {
  return all.map((word) => `${key}=${word}`)
}
