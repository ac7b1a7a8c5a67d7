// The terminal of the process: its streams, colours, and the width of text on it.

export type Env = Readonly<Record<string, string | undefined>>

export interface Terminal {
  readonly env: Env
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

const CODES: Record<Style, readonly [open: number, close: number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
}

export type Paint = (style: Style, text: string) => string

/** Whether a stream is a terminal that understands escape sequences. */
export function hasCursor({ env }: Pick<Terminal, 'env'>, stream: NodeJS.WriteStream): boolean {
  return stream.isTTY && env.TERM !== 'dumb'
}

/** Returns a function that colours text, where the stream shows colours and NO_COLOR is not set. */
export function painter(terminal: Pick<Terminal, 'env'>, stream: NodeJS.WriteStream): Paint {
  const coloured = hasCursor(terminal, stream) && !terminal.env.NO_COLOR
  if (!coloured) return (_style, text) => text
  return (style, text) => `\u001b[${CODES[style][0]}m${text}\u001b[${CODES[style][1]}m`
}

/** Whether input and messages are both on a terminal. */
export function isInteractive({ stdin, stderr }: Pick<Terminal, 'stdin' | 'stderr'>): boolean {
  return Boolean(stdin.isTTY && stderr.isTTY)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: finding them is the point
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** Escapes control characters in text from elsewhere: they would move the cursor or reorder the line. */
export function plain(text: string): string {
  return text.replaceAll(CONTROL, (character) => {
    if (character === '\n') return '\\n'
    if (character === '\t') return '\\t'
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}

const WIDE =
  /^(?:\p{Emoji_Presentation}|[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{20000}-\u{3fffd}])/u
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII
const ASCII = /^[\u0000-\u007f]*$/

function graphemes(text: string): string[] {
  return [...new Intl.Segmenter().segment(text)].map(({ segment }) => segment)
}

/** How many columns a text takes. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  return graphemes(text).reduce((sum, grapheme) => sum + (WIDE.test(grapheme) ? 2 : 1), 0)
}

/** The text cut to a number of columns. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width <= 0) return ''
  let kept = ''
  let used = 0
  for (const grapheme of graphemes(text)) {
    const next = widthOf(grapheme)
    if (used + next > width - 1) break
    kept += grapheme
    used += next
  }
  return `${kept}…`
}

/** The text cut to a number of columns at its beginning. */
export function cutStart(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  if (width <= 0) return ''
  let kept = ''
  let used = 0
  for (const grapheme of graphemes(text).reverse()) {
    const next = widthOf(grapheme)
    if (used + next > width - 1) break
    kept = grapheme + kept
    used += next
  }
  return `…${kept}`
}
