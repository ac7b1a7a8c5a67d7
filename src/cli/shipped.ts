// What comes with the program: its version, and the built-in types. In a build both are in the program (tools/cli/bundle.ts).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Noun } from './server/nouns.ts'

const ROOT = join(import.meta.dirname, '../..')

export function shippedVersion(): string {
  return JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).version
}

export async function shippedTypes(): Promise<readonly Noun[]> {
  const { loadTypes } = await import('../registry/load-types.ts')
  const { describeTypes } = await import('../registry/describe-types.ts')
  const { readNouns } = await import('./server/nouns.ts')
  const loaded = loadTypes([join(ROOT, 'resources')])
  if (!loaded.ok) throw new Error(loaded.problems.join('\n'))
  return readNouns({ 'x-flux-types': describeTypes(loaded.types), components: { schemas: {} } }) ?? []
}
