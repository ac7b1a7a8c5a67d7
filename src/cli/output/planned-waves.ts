// The waves of a rollout that has not started, for people: who is in each, and what each has to prove.
import type { PlannedWave } from '../../api/rollout-schema.ts'
import type { Preview } from '../../api/wire-types.ts'
import { howLong } from '../../base/relative-time.ts'
import { firstOf } from '../../base/sentences.ts'
import { waveConditions } from '../../domain/rollouts/wave-words.ts'
import type { ReportLook } from './field-report.ts'
import { renderTable } from './table.ts'
import { plain } from './terminal.ts'

/** How many members are named; on a terminal fewer, so that a wave is a line. */
const NAMED = 8
const NAMED_ON_TERMINAL = 2

/** Lines for the waves of a preview; empty where it is of no rollout. */
export function describePlannedWaves(
  look: ReportLook,
  { waves, expected_duration_s: seconds }: Preview,
): string {
  if (!waves) return ''
  const named = look.width === undefined ? NAMED : NAMED_ON_TERMINAL
  const rows = waves.map((wave) => [
    wave.name,
    wave.members.toLocaleString('en'),
    wave.absent.toLocaleString('en'),
    wave.members === 0 ? 'skipped' : conditionsOf(wave),
    membersOf(wave, named),
  ])
  const headers = ['WAVE', 'CLUSTERS', 'AWAY', 'PASSES WITH', 'WHO']
  const table = renderTable(
    headers,
    rows.map((cells) => cells.map(plain)),
    { width: look.width },
  )
  const absent = waves.flatMap(absentIn)
  const took =
    seconds === undefined ? '' : `Takes at least ${howLong(seconds * 1000)}, where nothing fails.\n`
  return `${look.paint('bold', 'Wave by wave')}\n${table}${absent.join('')}${took}`
}

/** `Away in uat: uat-us-01 (offline)`. */
function absentIn({ name, absent, absent_details: details }: PlannedWave): string[] {
  if (absent === 0) return []
  const clusters = details.map(({ cluster, why }) => plain(`${cluster} (${why})`))
  const unnamed = Array.from({ length: absent - details.length }, () => '')
  return [`Away in ${name}: ${firstOf([...clusters, ...unnamed], Math.min(NAMED, details.length))}\n`]
}

function membersOf({ details, members }: PlannedWave, named: number): string {
  // A preview names only the first of many.
  const unnamed = Array.from({ length: Math.max(0, members - details.length) }, () => '')
  return firstOf([...details, ...unnamed], Math.min(named, details.length))
}

/** What a wave has to prove, in numbers of clusters: `2/2 applied, 0 failed, soak 10m`. */
function conditionsOf(wave: PlannedWave): string {
  const gates = wave.gates.map(({ kind, needed, of }) =>
    kind === 'failures'
      ? `${needed === 0 ? '0' : `at most ${needed}`} failed`
      : `${needed}/${of} ${kind.replace(/_percent$/, '')}`,
  )
  const { gates: _, ...others } = wave
  return waveConditions(gates, others).join(', ')
}
