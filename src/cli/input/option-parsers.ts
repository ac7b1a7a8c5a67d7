// Parsers of option values for commander: lists and numbers.
import { InvalidArgumentError } from 'commander'

/** Collects the values of an option that may be repeated. */
export function collect(value: string, earlier: readonly string[] = []): string[] {
  return [...earlier, value]
}

/** Collects ids, repeated or joined by commas. */
export function collectIds(value: string, earlier: readonly string[] = []): string[] {
  return [
    ...earlier,
    ...value
      .split(',')
      .map((id) => id.trim())
      .filter((id) => id !== ''),
  ]
}

export function parseCount(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}
