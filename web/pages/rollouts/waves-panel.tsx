// The waves as columns: how far each is, its gates against what they need, and a cell for each of its clusters.
import { Button } from '@mantine/core'
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import type { MemberState, ShownRollout, ShownWave } from '../../../src/api/rollout-schema.ts'
import { howLong } from '../../../src/base/relative-time.ts'
import { queries } from '../../api/queries.ts'
import { Age } from '../../parts/age.tsx'
import { Loaded } from '../../parts/loaded.tsx'
import { Panel } from '../../parts/page.tsx'
import { type Action, PreviewDialog } from '../../parts/preview-dialog.tsx'
import { ToneBadge } from '../../parts/state-badge.tsx'
import { approvalOf, useMayApprove } from './rollout-actions.tsx'
import { hasEnded, MEMBERS, WAVES, wordsOfGate } from './rollout-words.ts'
import classes from './waves-panel.module.css'

/** Cells of a wave; its count says how many clusters there are. */
const CELLS = 500

export function WavesPanel({ rollout }: { readonly rollout: ShownRollout }) {
  return (
    <Panel title="Waves">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: whoever has no mouse scrolls it with the arrow keys */}
      <section className={classes.scroller} aria-label="Waves" tabIndex={0}>
        {rollout.waves.map((wave) => (
          <Column key={wave.name} wave={wave} rollout={rollout} />
        ))}
      </section>
      {!hasEnded(rollout) && <Legend />}
    </Panel>
  )
}

interface ColumnProps {
  readonly wave: ShownWave
  readonly rollout: ShownRollout
}

function Column({ wave, rollout }: ColumnProps) {
  const { name, state, members, opened, opened_at, passed_at, gates, set_aside } = wave
  const { tone, meaning } = WAVES[state]
  return (
    <article className={classes.wave} aria-label={`Wave ${name}`}>
      <h3 className={classes.name}>
        {name}
        <ToneBadge tone={tone} meaning={meaning}>
          {state}
        </ToneBadge>
      </h3>
      <p className={classes.detail}>
        {opened} of {members} {members === 1 ? 'cluster' : 'clusters'} open
        {set_aside > 0 && `, ${set_aside} set aside`}
        {opened_at && (
          <>
            , since <Age at={opened_at} />
          </>
        )}
        {passed_at && (
          <>
            , passed <Age at={passed_at} />
            {opened_at && ` after ${howLong(Date.parse(passed_at) - Date.parse(opened_at))}`}
          </>
        )}
      </p>
      <ul className={classes.gates}>
        {gates.map((gate) => (
          <li key={`${gate.kind} ${gate.name ?? ''}`} data-tone={toneOf(gate)}>
            <span aria-hidden="true">{SIGNS[toneOf(gate)]}</span>
            <span className="visually-hidden">{gate.holds ? 'holds: ' : 'does not hold: '}</span>
            {wordsOfGate(gate)}
          </li>
        ))}
      </ul>
      <Approvals wave={wave} rollout={rollout} />
      {!hasEnded(rollout) && members > 0 && <Cells rollout={rollout.id} wave={name} members={members} />}
    </article>
  )
}

const SIGNS = { good: '✓', warn: '…', bad: '✗' } as const

/** What is not there yet may come; a failure does not go away by itself. */
function toneOf({ holds, kind, count, needed_count }: ShownWave['gates'][number]): keyof typeof SIGNS {
  if (holds) return 'good'
  return kind === 'failures' && count > needed_count ? 'bad' : 'warn'
}

function Approvals({ wave: { name, missing_approvals = [] }, rollout }: ColumnProps) {
  const mayApprove = useMayApprove()
  const [action, setAction] = useState<Action>()
  if (missing_approvals.length === 0) return null
  return (
    <>
      {missing_approvals.map((missing) => (
        <p key={missing.when} className={classes.detail}>
          needs {missing.message}{' '}
          {mayApprove(missing) && (
            <Button
              size="compact-xs"
              variant="default"
              onClick={() => setAction(approvalOf(rollout, name, missing.when))}
              aria-label={`Approve ${missing.when} ${name}`}
            >
              Approve…
            </Button>
          )}
        </p>
      ))}
      <PreviewDialog action={action} onClose={() => setAction(undefined)} />
    </>
  )
}

interface CellsProps {
  readonly rollout: string
  readonly wave: string
  readonly members: number
}

function Cells({ rollout, wave, members }: CellsProps) {
  const query = useQuery(queries.rolloutMembers(rollout, wave, CELLS))
  return (
    <Loaded query={query} lines={2}>
      {(found) => (
        <>
          <ul className={classes.cells} aria-label={`Clusters of wave ${wave}`}>
            {found.map(({ cluster, state }) => (
              <li key={cluster}>
                <Link
                  to="/clusters/$cluster"
                  params={{ cluster }}
                  className={classes.cell}
                  data-tone={MEMBERS[state].tone}
                  title={`${cluster}: ${state}`}
                  aria-label={`${cluster}: ${state}`}
                >
                  {MEMBERS[state].sign}
                </Link>
              </li>
            ))}
          </ul>
          {members > found.length && <p className={classes.detail}>and {members - found.length} more</p>}
        </>
      )}
    </Loaded>
  )
}

function Legend() {
  return (
    <ul className={classes.legend} aria-label="Signs">
      {(Object.keys(MEMBERS) as MemberState[]).map((state) => (
        <li key={state} title={MEMBERS[state].meaning}>
          <span className={classes.cell} data-tone={MEMBERS[state].tone} aria-hidden="true">
            {MEMBERS[state].sign}
          </span>{' '}
          {state}
        </li>
      ))}
    </ul>
  )
}
