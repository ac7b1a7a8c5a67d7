// The waves of a rollout that has not started: who is in each, what it has to prove, and how long all takes at least.
import { Stack, Text } from '@mantine/core'
import type { PlannedWave } from '../../src/api/rollout-schema.ts'
import { howLong } from '../../src/base/relative-time.ts'
import { count } from '../../src/base/sentences.ts'
import { waveConditions } from '../../src/domain/rollouts/wave-words.ts'
import { Facts } from './facts.tsx'

interface PlannedWavesProps {
  readonly waves: readonly PlannedWave[]
  readonly seconds: number
}

export function PlannedWaves({ waves, seconds }: PlannedWavesProps) {
  return (
    <Stack gap={4}>
      <Text size="sm">
        {count(waves.length, 'wave')}; it takes at least {howLong(seconds * 1000)}, if every cluster answers
        in time.
      </Text>
      <Facts
        label="Planned waves"
        head={['Wave', 'Clusters', 'Takes at least', 'Passes when', 'Waits for']}
        rows={waves.map((wave) => ({
          id: wave.name,
          cells: [
            wave.name,
            <span key="members" title={wave.details.join(', ')}>
              {wave.members}
              {wave.absent > 0 && `, ${wave.absent} absent now`}
            </span>,
            wave.members === 0 ? 'nothing: it has no clusters' : howLong(wave.expected_duration_s * 1000),
            wave.gates.map(wordsOf).join(', '),
            waveConditions([], { ...wave, gates: {} }).join(', ') || 'nothing else',
          ],
        }))}
      />
    </Stack>
  )
}

function wordsOf({ kind, needed, of }: PlannedWave['gates'][number]): string {
  if (kind === 'failures') return `at most ${needed} of ${of} fail`
  return `${needed} of ${of} ${kind.replace('_percent', '')}`
}
