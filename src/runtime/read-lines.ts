// Lines from a stream of bytes, split at line feeds alone: text may hold other characters that end lines.

export type LineProblem = 'too_long' | 'cut_off'

interface Options {
  /** The longest line, not counting its line feed. */
  readonly maxBytes?: number
  /** Makes the error to throw; without it a last line that has no line feed is left out. */
  readonly toError?: (problem: LineProblem) => Error
}

const LINE_FEED = 0x0a

/** Yields whole lines, without their line feeds. */
export async function* readLines(
  chunks: AsyncIterable<Uint8Array>,
  { maxBytes = Number.POSITIVE_INFINITY, toError }: Options = {},
): AsyncGenerator<Uint8Array> {
  let begun: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    let start = 0
    for (let end = chunk.indexOf(LINE_FEED); end >= 0; end = chunk.indexOf(LINE_FEED, start)) {
      const rest = chunk.subarray(start, end)
      yield begun.length === 0 ? rest : Buffer.concat([...begun, rest])
      begun = []
      size = 0
      start = end + 1
    }
    size += chunk.length - start
    if (size > maxBytes) throw toError?.('too_long') ?? new Error(`a line is longer than ${maxBytes} bytes`)
    if (start < chunk.length) begun.push(chunk.subarray(start))
  }
  if (begun.length > 0 && toError) throw toError('cut_off')
}
