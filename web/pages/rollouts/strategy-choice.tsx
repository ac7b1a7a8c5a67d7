// How a change goes through the fleet: a strategy by its name, waves that somebody types, or those that the rollout has.
import { SegmentedControl, Select, Stack, Text } from '@mantine/core'
import { getRouteApi } from '@tanstack/react-router'
import { isObject, type JsonObject } from '../../../src/base/json.ts'
import type { Strategy } from '../../../src/domain/rollouts/rollout.ts'
import {
  asStrategy,
  DEFAULT_STRATEGY,
  DEFAULT_STRATEGY_ID,
  gatesOf,
} from '../../../src/domain/rollouts/strategy.ts'
import { gateWords, waveConditions, whoIn } from '../../../src/domain/rollouts/wave-words.ts'
import { useStrategies } from '../../api/use-strategies.ts'
import { Facts } from '../../parts/facts.tsx'
import { JsonBox, parseJsonText } from '../../parts/json-box.tsx'

const route = getRouteApi('/rollouts/new')

/** `own` has the text that was typed; `kept` are the waves of the rollout that is amended. */
export type Course =
  | { readonly kind: 'strategy' }
  | { readonly kind: 'kept' }
  | { readonly kind: 'own'; readonly text: string }

const KINDS = { kept: 'Its waves', strategy: 'A strategy', own: 'Own waves' } as const

interface StrategyChoiceProps {
  readonly course: Course
  /** The name of the strategy, for `strategy`. */
  readonly strategy: string
  readonly mayKeep: boolean
  readonly onChange: (course: Course) => void
}

/** What a body says of it; undefined while what was typed has no waves. */
export function fieldsOf(course: Course, strategy: string): JsonObject | undefined {
  if (course.kind === 'kept') return {}
  if (course.kind === 'strategy') return { strategy }
  const parsed = parseJsonText(course.text)
  return parsed.ok && isObject(parsed.value) && Array.isArray(parsed.value.waves) ? parsed.value : undefined
}

export function StrategyChoice({ course, strategy, mayKeep, onChange }: StrategyChoiceProps) {
  const search = route.useSearch()
  const navigate = route.useNavigate()
  const found = useStrategies()
  const document = found.find(({ id }) => id === strategy)
  const chosen = document ? asStrategy(document as never) : builtIn(strategy)
  const names = new Set([DEFAULT_STRATEGY_ID, strategy, ...found.map(({ id }) => String(id))])
  const enter = (kind: Course['kind']) =>
    onChange(kind === 'own' ? { kind, text: JSON.stringify(chosen ?? DEFAULT_STRATEGY, null, 2) } : { kind })
  const kinds = Object.entries(KINDS).filter(([kind]) => mayKeep || kind !== 'kept')
  return (
    <Stack gap="sm" p="sm">
      <SegmentedControl
        aria-label="How it goes through the fleet"
        value={course.kind}
        onChange={(kind) => enter(kind as Course['kind'])}
        data={kinds.map(([value, label]) => ({ value, label }))}
        size="xs"
        w="fit-content"
      />
      {course.kind === 'strategy' && (
        <Select
          label="Strategy"
          data={[...names]}
          value={strategy}
          onChange={(name) => void navigate({ search: { ...search, ...(name && { strategy: name }) } })}
          searchable
          size="sm"
          maw={360}
        />
      )}
      {course.kind === 'strategy' && (
        <Text size="sm" c="dimmed">
          {descriptionOf(document, chosen)}
        </Text>
      )}
      {course.kind === 'strategy' && chosen && <Waves strategy={chosen} />}
      {course.kind === 'own' && (
        <JsonBox
          label="Waves"
          description="Fields of a strategy, as `flux-resourceset-cli explain strategy` names them. The preview says who is in each wave."
          value={course.text}
          onChange={(text) => onChange({ kind: 'own', text })}
        />
      )}
    </Stack>
  )
}

function builtIn(strategy: string): Strategy | undefined {
  return strategy === DEFAULT_STRATEGY_ID ? DEFAULT_STRATEGY : undefined
}

function descriptionOf(document: JsonObject | undefined, chosen: Strategy | undefined): string {
  if (document) return String(document.description ?? 'It has no description.')
  return chosen ? 'Built in.' : 'It is not among the strategies of this service.'
}

function Waves({ strategy: { waves } }: { readonly strategy: Strategy }) {
  return (
    <Facts
      label="Waves of the strategy"
      head={['Wave', 'Clusters', 'Passes with']}
      rows={waves.map((wave) => ({
        id: wave.name,
        cells: [wave.name, whoIn(wave), waveConditions(gateWords(gatesOf(wave)), wave).join(', ')],
      }))}
    />
  )
}
