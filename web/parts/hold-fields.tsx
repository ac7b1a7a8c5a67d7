// Why clusters are held, and for how long.
import { Select, TextInput } from '@mantine/core'
import { SPANS } from './spans.ts'

export interface HoldInput {
  readonly reason: string
  readonly hours: string
}

export const NEW_HOLD: HoldInput = { reason: '', hours: '24' }

interface HoldFieldsProps {
  readonly input: HoldInput
  readonly onChange: (next: Partial<HoldInput>) => void
}

export function HoldFields({ input: { reason, hours }, onChange }: HoldFieldsProps) {
  return (
    <>
      <TextInput
        label="Why it is held"
        value={reason}
        onChange={({ currentTarget }) => onChange({ reason: currentTarget.value })}
      />
      <Select
        label="For how long"
        data={SPANS}
        value={hours}
        onChange={(chosen) => onChange({ hours: chosen ?? NEW_HOLD.hours })}
        allowDeselect={false}
        size="sm"
      />
    </>
  )
}
