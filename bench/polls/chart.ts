// The cost of a poll by the size of the fleet, as a drawing.

export interface Line {
  readonly name: string
  readonly colour: string
  readonly isDashed?: boolean
  /** Size of the fleet, and microseconds; a line without sizes is drawn across. */
  readonly points: readonly (readonly [number, number])[]
}

const WIDTH = 760
const HEIGHT = 420
const LEFT = 60
const RIGHT = 200
const TOP = 30
const BOTTOM = 50
const STEPS = [5, 10, 20, 25, 50, 100]

/** Sizes grow by powers of ten from left to right. */
export function drawChart(title: string, sizes: readonly number[], lines: readonly Line[]): string {
  const drawn = lines.filter(({ points }) => points.length > 0)
  const most = Math.max(...drawn.flatMap(({ points }) => points.map(([, y]) => y)))
  const step = STEPS.find((each) => most / each <= 8) ?? 200
  const top = Math.ceil(most / step) * step
  const [first, last] = [Math.log10(sizes[0] ?? 1), Math.log10(sizes.at(-1) ?? 10)]
  const x = (size: number): number =>
    LEFT + ((Math.log10(size) - first) / Math.max(last - first, 1)) * (WIDTH - LEFT - RIGHT)
  const y = (value: number): number => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM)
  const parts = [
    text(LEFT, 18, title, 'start', 'font-weight="bold"'),
    ...Array.from({ length: top / step + 1 }, (_, i) => i * step).flatMap((value) => [
      `<line x1="${LEFT}" x2="${WIDTH - RIGHT}" y1="${y(value)}" y2="${y(value)}" stroke="#ddd"/>`,
      text(LEFT - 8, y(value) + 4, String(value), 'end'),
    ]),
    ...sizes.map((size) => text(x(size), HEIGHT - BOTTOM + 20, size.toLocaleString('en'), 'middle')),
    text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, 'clusters', 'middle'),
  ]
  const labels = spreadOut(drawn.map(({ points }) => y(points.at(-1)?.[1] ?? 0)))
  for (const [i, { name, colour, isDashed, points }] of drawn.entries()) {
    const places = points.map(([size, value]) => `${x(size).toFixed(1)},${y(value).toFixed(1)}`).join(' ')
    const dashes = isDashed ? ' stroke-dasharray="6 4"' : ''
    parts.push(
      `<polyline points="${places}" fill="none" stroke="${colour}" stroke-width="2"${dashes}/>`,
      text(WIDTH - RIGHT + 8, (labels[i] ?? 0) + 4, name, 'start', `fill="${colour}"`),
    )
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="12">
<title>${title}</title>
<rect width="${WIDTH}" height="${HEIGHT}" fill="white"/>
${parts.join('\n')}
</svg>
`
}

function text(x: number, y: number, words: string, anchor: string, more = ''): string {
  return `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" text-anchor="${anchor}" ${more}>${words}</text>`
}

/** Moves labels down where they would cover one another. */
function spreadOut(places: readonly number[]): number[] {
  const order = places.map((_, i) => i).sort((a, b) => (places[a] ?? 0) - (places[b] ?? 0))
  const moved = [...places]
  let least = Number.NEGATIVE_INFINITY
  for (const i of order) {
    moved[i] = Math.max(moved[i] ?? 0, least)
    least = (moved[i] as number) + 15
  }
  return moved
}
