// The waves of a rollout in a line: each as wide as its share of clusters, filled as far as it is.
import type { ShownWave } from '../../../src/api/rollout-schema.ts'
import classes from './wave-bar.module.css'

export function WaveBar({ waves }: { readonly waves: readonly ShownWave[] }) {
  const passed = waves.filter(({ state }) => state === 'passed' || state === 'skipped').length
  return (
    <span className={classes.all}>
      <span className={classes.bar} aria-hidden="true">
        {waves.map(({ name, state, members }) => (
          <span key={name} data-state={state} style={{ flexGrow: Math.max(1, Math.sqrt(members)) }} />
        ))}
      </span>
      {passed} of {waves.length}
    </span>
  )
}
