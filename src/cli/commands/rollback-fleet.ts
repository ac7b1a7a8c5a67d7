// `rollback`: makes the fleet, or a part of it, what it was.
import type { Command } from 'commander'
import type { JsonObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { parseMoment, parseRevision } from '../input/moments.ts'
import { collectIds } from '../input/option-parsers.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { typeNamed } from '../server/nouns.ts'
import { sendChange } from '../server/send-change.ts'

interface Flags extends WriteFlags {
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
      run(async (session, { to, selector, type, id, ...flags }: Flags) => {
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
