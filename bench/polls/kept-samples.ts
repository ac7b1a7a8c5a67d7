// Samples that are kept in a file, so that a long measurement can be made in several short runs.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import type { Measured } from './cases.ts'

/** Adds what was measured to the file, and returns all that it holds. */
export function addToSamples(file: string, cases: readonly Measured[]): readonly Measured[] {
  const kept: Measured[] = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
  for (const { server, size, style, samples } of cases) {
    const known = kept.find((each) => each.server === server && each.size === size && each.style === style)
    if (known) known.samples.push(...samples)
    else kept.push({ server, size, style, samples: [...samples] })
  }
  kept.sort((a, b) => a.size - b.size)
  writeFileSync(file, JSON.stringify(kept))
  return kept
}
