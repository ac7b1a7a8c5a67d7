// One change of all clusters that the filter leaves: what it does is previewed, and it is one revision, or a rollout.
import {
  Autocomplete,
  Button,
  Checkbox,
  Group,
  Modal,
  SegmentedControl,
  Select,
  Stack,
  Text,
  TextInput,
} from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { Noun } from '../../../src/api/noun.ts'
import { DEFAULT_STRATEGY_ID } from '../../../src/domain/rollouts/strategy.ts'
import { type FleetFilter, queries } from '../../api/queries.ts'
import { HoldFields, NEW_HOLD } from '../../parts/hold-fields.tsx'
import { JsonBox } from '../../parts/json-box.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import {
  BULK_KINDS,
  type BulkInput,
  type BulkKind,
  bulkOperation,
  MAX_NAMED,
  selectorOf,
  type Target,
} from './bulk-operation.ts'

interface BulkDialogProps {
  /** Without its order. */
  readonly filter: FleetFilter
  readonly type: Noun
  readonly title: string
  readonly onClose: () => void
}

export function BulkDialog({ filter, type, title, onClose }: BulkDialogProps) {
  const [action, setAction] = useState<Action>()
  return (
    <>
      <Modal opened={!action} onClose={onClose} title={title} size="lg" centered>
        <BulkTarget filter={filter} type={type} onAction={setAction} />
      </Modal>
      <PreviewDialog action={action} onClose={onClose} />
    </>
  )
}

interface FormProps {
  readonly type: Noun
  readonly onAction: (action: Action) => void
}

function BulkTarget({ filter, ...form }: FormProps & { readonly filter: FleetFilter }) {
  const selector = selectorOf(filter)
  const named = useQuery({ ...queries.fleetIds(filter, MAX_NAMED), enabled: selector === undefined })
  if (selector !== undefined) return <BulkForm {...form} target={{ selector }} />
  return (
    <Loaded query={named} lines={4}>
      {({ total, ids }) =>
        total > ids.length ? (
          <Text size="sm">
            These are too many to be named one by one: narrow the list to {MAX_NAMED.toLocaleString('en')}, or
            use only a selector without states.
          </Text>
        ) : (
          <BulkForm {...form} target={{ clusters: ids }} />
        )
      }
    </Loaded>
  )
}

const NOTHING: BulkInput = {
  ...NEW_HOLD,
  ...{ kind: 'labels', labels: '', component: '', type: '', id: '', json: '{}' },
}

function BulkForm({ type, target, onAction }: FormProps & { readonly target: Target }) {
  const [input, setInput] = useState<BulkInput>(NOTHING)
  const [isRollout, setRollout] = useState(false)
  const made = bulkOperation(type, input, target)
  const set = (next: Partial<BulkInput>) => setInput({ ...input, ...next })
  const preview = () => {
    if (made.ok) onAction(actionOf(made.operation, input.kind, target, isRollout))
  }
  return (
    <Stack gap="sm">
      <Text size="sm">{wordsOf(target)}</Text>
      <SegmentedControl
        aria-label="What changes"
        value={input.kind}
        onChange={(kind) => set({ kind: kind as BulkKind })}
        data={Object.entries(BULK_KINDS).map(([value, label]) => ({ value, label }))}
        size="xs"
      />
      <Fields input={input} onChange={set} />
      {!isAtOnce(input.kind) && (
        <Checkbox
          label="As a rollout, wave by wave"
          checked={isRollout}
          onChange={({ currentTarget }) => setRollout(currentTarget.checked)}
        />
      )}
      <Group justify="space-between">
        <Text size="sm" c="dimmed">
          {made.ok ? 'Nothing is stored before you confirm.' : `It ${made.message}.`}
        </Text>
        <Button onClick={preview} disabled={!made.ok}>
          Preview…
        </Button>
      </Group>
    </Stack>
  )
}

interface FieldsProps {
  readonly input: BulkInput
  readonly onChange: (next: Partial<BulkInput>) => void
}

function Fields({ input, onChange }: FieldsProps) {
  const { kind, labels, component, json } = input
  if (isAtOnce(kind))
    return (
      <>
        <Text size="sm">{MEANINGS[kind]}</Text>
        {kind === 'hold' && <HoldFields input={input} onChange={onChange} />}
      </>
    )
  if (kind === 'labels')
    return (
      <TextInput
        label="Labels"
        description="tier=gold sets one, zone- removes one"
        value={labels}
        onChange={({ currentTarget }) => onChange({ labels: currentTarget.value })}
        spellCheck={false}
      />
    )
  if (kind === 'unassign') return <Definition input={input} onChange={onChange} />
  return (
    <>
      {kind === 'assign' && <Definition input={input} onChange={onChange} />}
      {kind === 'values' && (
        <TextInput
          label="Component"
          value={component}
          onChange={({ currentTarget }) => onChange({ component: currentTarget.value })}
          spellCheck={false}
        />
      )}
      <JsonBox
        label={kind === 'assign' ? 'Overrides' : BULK_KINDS[kind]}
        description={DESCRIPTIONS[kind]}
        value={json}
        minRows={4}
        onChange={(text) => onChange({ json: text })}
      />
    </>
  )
}

/** Of what no rollout can do: a rollout changes what clusters are to have. */
const MEANINGS = {
  hold: 'They keep what they are served now, whatever is written and rolled out.',
  release: 'From their next poll on they get what they are to have. Those that are not held are left alone.',
  delete: 'They leave the fleet, and Flux removes there everything that came from here.',
} as const

function isAtOnce(kind: BulkKind): kind is keyof typeof MEANINGS {
  return kind in MEANINGS
}

const DESCRIPTIONS = {
  values: 'By path, such as {"replicas": "3"}; null removes one.',
  fields: 'A merge patch of each cluster, such as {"deletion_protection": true}; null removes a field.',
  assign: 'What these clusters set themselves, such as {"oci_tag": "v2.0.0"}; {} for nothing.',
} as const

/** How many ids are offered. */
const COMPLETIONS = 500

function Definition({ input: { type, id }, onChange }: FieldsProps) {
  const types = useQuery(queries.settings()).data?.types.filter(({ delivery }) => delivery) ?? []
  const list = useQuery({
    ...queries.documents(type, { offset: 0, limit: COMPLETIONS }),
    enabled: type !== '',
  })
  return (
    <Group gap="sm" align="flex-end">
      <Select
        label="Type"
        data={types.map(({ name }) => name)}
        value={type || null}
        onChange={(name) => onChange({ type: name ?? '', id: '' })}
        size="sm"
      />
      <Autocomplete
        label="Definition"
        value={id}
        onChange={(text) => onChange({ id: text })}
        data={list.data?.body.map((document) => String(document.id)) ?? []}
        limit={20}
        disabled={type === ''}
        size="sm"
      />
    </Group>
  )
}

function wordsOf(target: Target): string {
  if ('selector' in target) return `Of the clusters that ${target.selector} selects.`
  return `Of ${target.clusters.length === 1 ? 'the cluster' : `exactly the ${target.clusters.length} clusters`} that the filter leaves now.`
}

const TITLES: Readonly<Record<BulkKind, string>> = {
  labels: 'Change labels of',
  values: 'Change values of',
  fields: 'Change fields of',
  assign: 'Assign to',
  unassign: 'Unassign from',
  hold: 'Hold',
  release: 'Release',
  delete: 'Delete',
}

function actionOf(operation: unknown, kind: BulkKind, target: Target, isRollout: boolean): Action {
  const isDestructive = kind === 'delete'
  const isStaged = isRollout && !isAtOnce(kind)
  const rollout = isStaged ? { rollout: { strategy: DEFAULT_STRATEGY_ID } } : {}
  const whom = 'selector' in target ? target.selector : `${target.clusters.length} clusters`
  return {
    title: `${TITLES[kind]} ${whom}`,
    verb: isStaged ? 'Start the rollout' : isAtOnce(kind) ? TITLES[kind] : 'Change',
    call: { method: 'POST', path: '/batch', body: { operations: [operation], ...rollout } },
    isDestructive,
  }
}
