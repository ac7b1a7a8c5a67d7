// `batch`: operations of the API, from a file.
import type { Command } from 'commander'
import { isObject } from '../../base/json.ts'
import { PROGRAM, type Tools } from '../cli-command.ts'
import { usage } from '../failure.ts'
import { readOne, STDIN } from '../input/read-files.ts'
import { addWriteFlags, type WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { Refusal } from '../server/refusal.ts'
import { sendChange } from '../server/send-change.ts'

export function defineBatch(command: Command, { run }: Tools): void {
  command.requiredOption('-f, --file <file>', 'a YAML or JSON file with operations, - for stdin')
  addWriteFlags(command)
    .addHelpText(
      'after',
      `\nThe file is the body of POST /batch, or just its list of operations:\n\n  operations:\n    - {op: patch_values, component: podinfo, values: {replicaCount: "2"}, selector: environment!=prod}\n    - {op: patch, type: clusters, selector: environment=dev, patch: {labels: {wave: "1"}}}\n\nExamples:\n  ${PROGRAM} batch -f change.yaml --dry-run\n  ${PROGRAM} batch -f - -m 'two replicas' < change.yaml`,
    )
    .action(
      run(async (session, { file, ...flags }: WriteFlags & { file: string }) => {
        const read = await readOne(session.terminal, file)
        const body = Array.isArray(read) ? { operations: read } : read
        if (!isObject(body)) throw usage(`${file} must hold a list of operations`)
        const dryRun = flags.dryRun || body.dry_run === true
        const whole = { ...body, ...(flags.message !== undefined && { message: flags.message }) }
        const request = { method: 'POST', path: '/batch', body: whole, isFile: true } as const
        const sent = await inFile(file, () => sendChange(session, { ...flags, dryRun }, request))
        await printFleetWrite(session, sent, 'batch')
      }),
    )
}

/** A refusal that names the file, and counts its operations as people do. */
async function inFile<T>(file: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    const place = (text: string): string =>
      text.replaceAll(
        /\/operations\/(\d+):? ?/g,
        (_all, number: string) => `${file === STDIN ? 'stdin' : file}, operation ${Number(number) + 1}: `,
      )
    throw error.reworded(place)
  }
}
