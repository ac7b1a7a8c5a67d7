// The flags that name a set: its files, its name, and whether to prune.
import { basename, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { usage } from '../failure.ts'
import { collect } from '../input/option-parsers.ts'
import { STDIN } from '../input/read-files.ts'

export interface SetFlags {
  readonly file: readonly string[]
  readonly prune?: boolean
  readonly name?: string
  readonly overwrite?: boolean
}

export function addSetFlags(command: Command, { isOptional = false } = {}): Command {
  return addFileFlags(command, { isOptional })
    .option('--prune', 'delete what the set held before and holds no longer')
    .option('--overwrite', 'also what others have changed since the set was last applied')
}

/** The flags of what only reads or writes the files of a set. */
export function addFileFlags(command: Command, { isOptional = false } = {}): Command {
  const file = new Option(
    '-f, --file <path>',
    'a file, a folder with all below it, or - for stdin (repeatable)',
  )
  return command
    .addOption(file.argParser(collect).makeOptionMandatory(!isOptional))
    .option('--name <name>', 'name of the set (default: that of the first file or folder)')
}

export function setName({ name, file }: SetFlags): string {
  if (name === undefined) return defaultName(file)
  if (!isSetName(name)) throw usage(`--name must be a name such as fleet or team-a.prod, not "${name}"`)
  return name
}

const LABEL = /^[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?$/

/** Whether a set can have this name: like ids, a name of RFC 1123. */
function isSetName(name: string): boolean {
  return name.length <= 253 && name.split('.').every((label) => LABEL.test(label))
}

/** The name of a set without --name: that of the first file or folder. */
export function defaultName([first = STDIN]: readonly string[]): string {
  if (first === STDIN) return 'stdin'
  const name = basename(resolve(first))
    .replace(/\.(?:ya?ml|json)$/, '')
    .toLowerCase()
  const labels = name.split('.').map((label) =>
    label
      .replaceAll(/[^a-z0-9]+/g, '-')
      .slice(0, 62)
      .replaceAll(/^-|-$/g, ''),
  )
  const whole = labels.filter((label) => label !== '').join('.')
  return isSetName(whole) ? whole : (labels.find((label) => label !== '') ?? 'set')
}
