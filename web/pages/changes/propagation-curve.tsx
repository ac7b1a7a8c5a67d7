// Shares of clusters over the time since a change, as lines through the moments that are known.
import type { Propagation, PropagationTimes } from '../../../src/api/propagation-schema.ts'
import { howLong } from '../../../src/base/relative-time.ts'
import { count } from '../../../src/base/sentences.ts'
import { useServerNow } from '../../api/server-clock.ts'
import classes from './propagation-curve.module.css'

const WIDTH = 640
const HEIGHT = 160
const LEFT = 44
const BOTTOM = 22
const TOP = 8
const SHARES = [0, 0.5, 0.95, 1]

interface Point {
  readonly s: number
  readonly share: number
}

export function PropagationCurve({ propagation }: { readonly propagation: Propagation }) {
  const { time, affected, served, applied, times } = propagation
  const sinceS = Math.max(1, (useServerNow() - Date.parse(time)) / 1000)
  const lines = [
    { name: 'served', points: pointsOf(times.served, served / affected, sinceS) },
    { name: 'applied', points: pointsOf(times.applied, applied / affected, sinceS) },
  ]
  const endS = axisEnd(lines.flatMap(({ points }) => points).map(({ s }) => s))
  const x = (s: number): number => LEFT + (s / endS) * (WIDTH - LEFT - 8)
  const y = (share: number): number => TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)
  return (
    <figure className={classes.figure}>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        className={classes.chart}
        role="img"
        aria-label="Share of clusters over time; the table above has the numbers"
      >
        {SHARES.map((share) => (
          <g key={share}>
            <line x1={LEFT} x2={WIDTH - 8} y1={y(share)} y2={y(share)} className={classes.grid} />
            {share !== 0.95 && (
              <text x={LEFT - 6} y={y(share) + 4} textAnchor="end" className={classes.tick}>
                {share * 100} %
              </text>
            )}
          </g>
        ))}
        {[0, 0.5, 1].map((part) => (
          <text
            key={part}
            x={x(part * endS)}
            y={HEIGHT - 6}
            textAnchor={part === 0 ? 'start' : part === 1 ? 'end' : 'middle'}
            className={classes.tick}
          >
            {part === 0 ? 'change' : `+${howLong(part * endS * 1000)}`}
          </text>
        ))}
        {lines.map(({ name, points }) => (
          <g key={name} data-line={name}>
            <polyline
              points={points.map(({ s, share }) => `${x(Math.min(s, endS))},${y(share)}`).join(' ')}
              className={classes.line}
            />
            {points.slice(1).map(({ s, share }) => (
              <circle
                key={`${s} ${share}`}
                cx={x(Math.min(s, endS))}
                cy={y(share)}
                r="3"
                className={classes.dot}
              />
            ))}
          </g>
        ))}
      </svg>
      <figcaption className={classes.legend}>
        <span data-line="served">served</span>
        <span data-line="applied">applied</span>
        <span>share of {count(affected, 'cluster')}; lines join the moments that are known</span>
      </figcaption>
    </figure>
  )
}

/** Half, 95 % and all of them, as far as they are, and the present. */
function pointsOf({ p50_s, p95_s, p100_s }: PropagationTimes, now: number, sinceS: number): Point[] {
  const known = [
    { s: p50_s, share: 0.5 },
    { s: p95_s, share: 0.95 },
    { s: p100_s, share: 1 },
  ].filter((point): point is Point => point.s !== null)
  const isDone = p100_s !== null
  return [{ s: 0, share: 0 }, ...known, ...(isDone ? [] : [{ s: sinceS, share: now }])]
}

/** A little beyond the last point. */
function axisEnd(seconds: readonly number[]): number {
  return Math.max(10, 1.1 * Math.max(...seconds))
}
