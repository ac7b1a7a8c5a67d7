// What is printed of a write that has become a rollout, or that has changed one.
import type { RolloutStarted, ShownRollout } from '../../api/rollout-schema.ts'
import { count } from '../../base/sentences.ts'
import { PROGRAM } from '../cli-command.ts'
import type { Session } from '../session.ts'
import { plain } from './terminal.ts'

export async function printStarted(session: Session, started: RolloutStarted): Promise<void> {
  const { rollout, revision } = started
  await session.print({
    value: started,
    names: [`rollouts/${rollout.id}`],
    human: ({ paint }) =>
      `rollout ${rollout.id} ${describeStart(rollout)} ${paint('dim', `(revision ${revision})`)}\n`,
  })
  if (session.format.kind === 'human') session.note(`to follow it: ${PROGRAM} rollout watch ${rollout.id}`)
}

/** `is running: 7 clusters in 3 waves, dev is open for 2 of 2`. */
function describeStart({ state, waves, waiting_for }: ShownRollout): string {
  const members = waves.reduce((sum, wave) => sum + wave.members, 0)
  const filled = waves.filter((wave) => wave.members > 0)
  const whole = `${count(members, 'cluster')} in ${count(filled.length, 'wave')}`
  const open = waves.filter((wave) => wave.state === 'open')
  if (open.length === 0)
    return `is ${state}: ${whole}, none is open yet${waiting_for === null ? '' : `: ${plain(waiting_for)}`}`
  const now = open.map(({ name, opened, members: all }) => `${name} is open for ${opened} of ${all}`)
  return `is ${state}: ${whole}, ${now.join(', ')}`
}
