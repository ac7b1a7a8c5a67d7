// Tokens, and lists of them, as environment variables and files hold them.

/** Tokens from the environment: the tokens themselves, or the file that holds them and the variable that names it. */
export type TokenSource =
  | { readonly tokens: readonly string[] }
  | { readonly file: string; readonly variable: string }

/** Whether a text can be a token: it travels in a header, so it can hold no space and nothing outside ASCII. */
export function isToken(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text)
}

/** Parses tokens separated by commas or line breaks: during a rotation the old and the new one are both valid. */
export function parseTokenList(text: string): {
  readonly tokens: readonly string[]
  readonly problem?: string
} {
  const tokens = text
    .split(/[,\r\n]/)
    .map((token) => token.trim())
    .filter((token) => token !== '')
  if (!tokens.every(isToken))
    return { tokens: [], problem: 'may hold only printable ASCII characters without spaces' }
  return tokens.length > 0 ? { tokens } : { tokens, problem: 'holds no token' }
}
