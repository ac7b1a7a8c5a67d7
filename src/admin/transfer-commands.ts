// Commands that move what a store holds: into another store, into backups and back, and in signed bundles.
import { StreamError } from '../transfer/transfer-items.ts'
import { backup, restore } from './backup-commands.ts'
import { bundle } from './bundle-commands.ts'
import { copy } from './copy-command.ts'
import { NOT_WHOLE } from './store-commands.ts'
import type { Surroundings } from './transfer-streams.ts'

/** Runs a command and returns its exit code; undefined when there is no such command. */
export async function runTransferCommand(
  name: string,
  args: readonly string[],
  around: Surroundings,
): Promise<number | undefined> {
  try {
    if (name === 'copy') return await copy(args, around)
    if (name === 'backup') return await backup(args, around)
    if (name === 'restore') return await restore(args, around)
    if (name === 'bundle') return await bundle(args, around)
    return undefined
  } catch (error) {
    if (!(error instanceof StreamError) || !error.isDamaged) throw error
    around.tell(`flux-resourceset: ${error.message}`)
    return NOT_WHOLE
  }
}
