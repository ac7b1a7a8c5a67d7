// JSON text in pieces, so that a large value can be written a little at a time.

/** A list with more items than this is not written in one piece. */
const LONG = 50

/** Yields pieces that together are what JSON.stringify returns for a plain value. */
export function* jsonPieces(value: unknown): Generator<string> {
  if (Array.isArray(value) && value.length > LONG) yield* listPieces(value)
  else if (hasLong(value)) yield* objectPieces(value)
  else yield JSON.stringify(value)
}

function hasLong(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return Object.values(value).some((member) =>
    Array.isArray(member) ? member.length > LONG : hasLong(member),
  )
}

function* listPieces(list: readonly unknown[]): Generator<string> {
  let before = '['
  for (const item of list) {
    yield before
    yield* jsonPieces(item ?? null)
    before = ','
  }
  yield ']'
}

function* objectPieces(object: Record<string, unknown>): Generator<string> {
  let before = '{'
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue
    yield `${before}${JSON.stringify(key)}:`
    yield* jsonPieces(value)
    before = ','
  }
  yield '}'
}
