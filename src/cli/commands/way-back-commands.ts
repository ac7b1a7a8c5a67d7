// The way back: `revert` and `rollback`.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../command-tree.ts'
import { usage } from '../failure.ts'
import { collectIds } from '../input/field-flags.ts'
import { parseMoment, parseRevision } from '../output/moments.ts'
import { typeNamed } from '../server/nouns.ts'
import { addWriteFlags, printFleetWrite, sendChange, type WriteFlags } from '../server/send-change.ts'

export function defineRevert(command: Command, { run }: Tools): void {
  command.argument('<revision>', 'its number, as log shows it')
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nWhat others did since stays. If they changed the same fields, it is a conflict and nothing is done.\n\nExamples:\n  ${PROGRAM} revert 12 --dry-run\n  ${PROGRAM} revert 12 -m 'broke the demo'`,
    )
    .action(
      run(async (session, text: string, flags: WriteFlags) => {
        const revision = parseRevision(text)
        if (revision === undefined) throw usage(`a revision is a whole number, not "${text}"`)
        const sent = await sendChange(session, flags, {
          method: 'POST',
          path: `/revisions/${revision}/revert`,
        })
        await printFleetWrite(session, sent, `revert revision ${revision}`)
      }),
    )
}

interface RollbackFlags extends WriteFlags {
  readonly to: string
  readonly selector?: string
  readonly type?: readonly string[]
  readonly id?: readonly string[]
}

export function defineRollback(command: Command, { run }: Tools): void {
  command
    .requiredOption('--to <revision|time>', 'make it what it was then: 12, 2h, 2026-01-31T12:00:00Z')
    .option('-l, --selector <selector>', 'only clusters that match this label selector')
    .option('--type <name>', 'only documents of this type (repeatable)', collectIds)
    .option('--id <id>', 'only documents with this id (repeatable)', collectIds)
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nExamples:\n  ${PROGRAM} rollback --to 12 --dry-run\n  ${PROGRAM} rollback --to 2h --selector environment=dev\n  ${PROGRAM} rollback --to 12 --type platform_components --id grafana`,
    )
    .action(
      run(async (session, { to, selector, type, id, ...flags }: RollbackFlags) => {
        const revision = parseRevision(to)
        const moment: JsonObject =
          revision === undefined
            ? { to_time: parseMoment(to, '--to', new Date()) }
            : { to_revision: revision }
        const part: JsonObject = {
          ...(selector !== undefined && { selector }),
          ...(type && { types: type.map((name) => typeNamed(session.nouns, name)) }),
          ...(id && { ids: id }),
        }
        const sent = await sendChange(session, flags, {
          method: 'POST',
          path: '/rollback',
          body: { ...moment, ...part },
        })
        await printFleetWrite(session, sent, `roll back to ${to}`)
      }),
    )
}
