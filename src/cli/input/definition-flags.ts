// The flags that choose clusters by what they have: `--component grafana=v1.1.0`.
import type { Command } from 'commander'
import { usage } from '../failure.ts'
import type { Noun } from '../server/nouns.ts'
import { collect } from './option-parsers.ts'

const ID = /^[\w./-]+$/

function flagOf({ noun }: Noun): string {
  return `--${noun}`
}

/** Adds a flag for each type that clusters are assigned, but for those whose flag the command has already. */
export function addDefinitionFlags(command: Command, nouns: readonly Noun[]): void {
  for (const noun of nouns) {
    if (!noun.delivery || command.options.some(({ long }) => long === flagOf(noun))) continue
    const what = noun.delivery.versions ? '<id[=version]>' : '<id>'
    const about = noun.delivery.versions
      ? 'are assigned it, or are served this version of it'
      : 'are assigned it'
    command.option(`${flagOf(noun)} ${what}`, `only those that ${about} (repeatable)`, collect)
  }
}

/** The selector together with what the flags ask for; undefined without any. */
export function selectorWith(
  nouns: readonly Noun[],
  flags: Readonly<Record<string, unknown>>,
  selector: string | undefined,
): string | undefined {
  const asked = nouns.flatMap((noun) => {
    if (!noun.delivery) return []
    const given = flags[attributeOf(noun)]
    return Array.isArray(given) ? given.map((text) => requirementFor(noun, String(text))) : []
  })
  const all = [...(selector === undefined ? [] : [selector]), ...asked]
  return all.length === 0 ? undefined : all.join(',')
}

/** As commander names the value of a flag. */
function attributeOf({ noun }: Noun): string {
  return noun.replaceAll(/-(\w)/g, (_all, letter: string) => letter.toUpperCase())
}

function requirementFor(noun: Noun, text: string): string {
  const [id = '', ...rest] = text.split('=')
  const version = rest.join('=')
  const isVersioned = rest.length > 0
  if (!ID.test(id) || (isVersioned && !ID.test(version)))
    throw usage(
      `${flagOf(noun)} must be an id${noun.delivery?.versions ? ', or id=version' : ''}, not "${text}"`,
    )
  if (!isVersioned) return `uses.${noun.name}=${id}`
  if (!noun.delivery?.versions) throw usage(`${flagOf(noun)} ${text}: a ${noun.singular} has no versions`)
  return `version.${id}=${version}`
}
