// An editor of JSON, which can also be read and typed as YAML; whoever uses it has JSON all the time.
import { Group, Input, SegmentedControl } from '@mantine/core'
import { useEffect, useRef, useState } from 'react'
import { parse, stringify } from 'yaml'
import type { Json } from '../../src/base/json.ts'
import { createKept } from '../session/kept.ts'
import classes from './code-editor.module.css'
import { type Editing, startEditing } from './code-mirror.ts'

type Format = 'json' | 'yaml'

/** The one that somebody chose last, for all editors. */
const chosenFormat = createKept<Format>('editor-format', (stored) => (stored === 'yaml' ? 'yaml' : 'json'))

interface CodeEditorProps {
  readonly label: string
  readonly describedBy: string
  /** JSON, or a text that is none yet. */
  readonly value: string
  readonly problem: string | undefined
  readonly minRows: number
  readonly onChange: (text: string) => void
}

export function CodeEditor({ label, describedBy, value, problem, minRows, onChange }: CodeEditorProps) {
  const format = chosenFormat.use()
  const [wrong, setWrong] = useState<string>()
  const place = useRef<HTMLDivElement>(null)
  const editing = useRef<Editing>(undefined)
  const latest = useRef({ value, onChange })
  latest.current = { value, onChange }
  useEffect(() => {
    const change = (text: string): void => {
      const read = format === 'yaml' ? fromYaml(text) : { json: text, problem: undefined }
      setWrong(read.problem)
      latest.current.value = read.json
      latest.current.onChange(read.json)
    }
    const parent = place.current as HTMLDivElement
    const text = shownAs(format, latest.current.value)
    const opened = startEditing({ parent, label, describedBy, format, minRows, text, onChange: change })
    editing.current = opened
    setWrong(undefined)
    return () => opened.close()
  }, [format, label, describedBy, minRows])
  useEffect(() => {
    // What was typed is on the screen as it was typed; anything else comes from outside.
    const isTyped = format === 'yaml' && sameJson(fromYaml(editing.current?.text() ?? '').json, value)
    if (!isTyped) editing.current?.replace(shownAs(format, value))
  }, [format, value])
  return (
    <>
      <div className={classes.box} data-invalid={problem !== undefined || undefined} ref={place} />
      <Group justify="space-between" gap="xs" mt={4}>
        <Input.Error>{problem && (wrong ?? problem)}</Input.Error>
        <SegmentedControl
          aria-label={`Format of ${label}`}
          size="xs"
          value={format}
          onChange={(chosen) => chosenFormat.set(chosen as Format)}
          data={[
            { value: 'json', label: 'JSON' },
            { value: 'yaml', label: 'YAML' },
          ]}
        />
      </Group>
    </>
  )
}

/** A text that is no JSON yet is shown as it is. */
function shownAs(format: Format, text: string): string {
  if (format === 'json') return text
  try {
    return stringify(JSON.parse(text) as Json)
  } catch {
    return text
  }
}

function fromYaml(text: string): { readonly json: string; readonly problem: string | undefined } {
  if (text.trim() === '') return { json: '', problem: undefined }
  try {
    return { json: JSON.stringify(parse(text), null, 2) ?? 'null', problem: undefined }
  } catch (error) {
    return { json: text, problem: `is not YAML: ${(error as Error).message.split('\n')[0]}` }
  }
}

function sameJson(one: string, other: string): boolean {
  if (one === other) return true
  try {
    return JSON.stringify(JSON.parse(one)) === JSON.stringify(JSON.parse(other))
  } catch {
    return false
  }
}
