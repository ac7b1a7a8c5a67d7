// Any operations of a batch, as JSON: several documents at once, assignments, JSON patches.
import { useState } from 'react'
import type { Json } from '../../../src/base/json.ts'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'
import type { OnOperations } from './start-page.tsx'

interface OperationsChangeProps {
  readonly initial: readonly Json[]
  readonly onOperations: OnOperations
}

export function OperationsChange({ initial, onOperations }: OperationsChangeProps) {
  const [text, setText] = useState(JSON.stringify(initial, null, 2))
  return (
    <JsonBox
      label="Operations"
      description='As POST /batch takes them: {"op": "patch", "type": "platform_components", "id": "podinfo", "patch": {"oci_tag": "v2.0.0"}}'
      value={text}
      onChange={(typed) => {
        setText(typed)
        const parsed = parseJsonText(typed)
        const isWhole = parsed.ok && Array.isArray(parsed.value) && parsed.value.length > 0
        onOperations(isWhole ? parsed.value : undefined)
      }}
    />
  )
}
