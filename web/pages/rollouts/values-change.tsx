// Values of one component for the clusters that a selector chooses.
import { TextInput } from '@mantine/core'
import { useState } from 'react'
import { isObject, type Json } from '../../../src/base/json.ts'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'
import { SelectorBox } from '../../parts/selector-box.tsx'
import type { OnOperations } from './start-page.tsx'

export function ValuesChange({ onOperations }: { readonly onOperations: OnOperations }) {
  const [component, setComponent] = useState('')
  const [selector, setSelector] = useState('')
  const [values, setValues] = useState('{}')
  const offer = (next: { component?: string; selector?: string; values?: string }) => {
    const given = { component, selector, values, ...next }
    const parsed = parseJsonText(given.values)
    const isWhole =
      given.component.trim() !== '' &&
      given.selector !== '' &&
      parsed.ok &&
      isObject(parsed.value) &&
      Object.keys(parsed.value).length > 0
    const operation = { op: 'patch_values', component: given.component.trim(), selector: given.selector }
    onOperations(isWhole ? [{ ...operation, values: parsed.value as Json }] : undefined)
  }
  return (
    <>
      <TextInput
        label="Component"
        value={component}
        onChange={({ currentTarget: { value } }) => {
          setComponent(value)
          offer({ component: value })
        }}
        maw={360}
        size="sm"
      />
      <SelectorBox
        value={selector}
        error={undefined}
        onChange={(chosen) => {
          setSelector(chosen)
          offer({ selector: chosen })
        }}
      />
      <JsonBox
        label="Values"
        description={'By path, such as {"replicas": "3"}; null removes one.'}
        value={values}
        minRows={4}
        onChange={(text) => {
          setValues(text)
          offer({ values: text })
        }}
      />
    </>
  )
}
