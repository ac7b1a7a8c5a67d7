// Values of environment variables, with a problem for each that is wrong.

export type Environment = Readonly<Record<string, string | undefined>>

export function oneOf<T extends string>(
  env: Environment,
  name: string,
  known: readonly T[],
  fallback: T,
  problems: string[],
): T {
  const value = env[name] || fallback
  if (known.includes(value as T)) return value as T
  problems.push(`${name} must be one of ${known.join(', ')}, not "${value}"`)
  return fallback
}

export function parseCount(
  env: Environment,
  name: string,
  fallback: number,
  problems: string[],
  least = 1,
): number {
  const text = env[name]
  if (!text) return fallback
  if (/^(0|[1-9]\d{0,8})$/.test(text) && Number(text) >= least) return Number(text)
  problems.push(`${name} must be a whole number of ${least} or more, not "${text}"`)
  return fallback
}

/** Hides the password and the parameters of a URL. */
export function redact(url: string): string {
  return url.replace(/^(\s*(?:[a-z][\w+.-]*:)?\/{0,2}).*@/is, '$1***@').replace(/\?.*/, '?…')
}

/** The items of a list that is separated by commas. */
export function listIn(text: string | undefined): string[] {
  return (text ?? '')
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}
