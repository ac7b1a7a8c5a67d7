// Lists of tokens, as environment variables and files hold them.

/** Tokens of the environment: themselves, or a file that holds them and the variable that names it. */
export type TokenSource =
  | { readonly tokens: readonly string[] }
  | { readonly file: string; readonly variable: string }

/** Tokens beside each other, by commas or on lines of their own: while one takes another's place, both are good. */
export function parseTokenList(text: string): {
  readonly tokens: readonly string[]
  readonly problem?: string
} {
  const tokens = text
    .split(/[,\r\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '')
  // A token travels in a header, so it can hold no space and nothing outside ASCII.
  const isFit = tokens.every((token) => /^[\x21-\x7e]+$/.test(token))
  if (!isFit) return { tokens: [], problem: 'may hold only printable ASCII characters without spaces' }
  return tokens.length > 0 ? { tokens } : { tokens, problem: 'holds no token' }
}
