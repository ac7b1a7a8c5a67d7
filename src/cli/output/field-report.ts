// Fields with two values, in lines for people.
import { diffFields, type FieldChange } from '../../base/diff.ts'
import { excerpt, excerpts, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Look } from './print.ts'
import { plain, type Style } from './terminal.ts'

/** How a report looks: values are cut where lines have a width. */
export type ReportLook = Pick<Look, 'paint' | 'width'>

export function describeField(look: ReportLook, indent: string, field: FieldChange): string[] {
  const { path, before, after } = field
  const value = (text: string, style: Style): string => look.paint(style, plain(text))
  if (Array.isArray(before) && Array.isArray(after)) {
    const lines = describeList(look, indent, path, before, after)
    if (lines.length > 0) return lines
  }
  const [was, is] = pair(look, before, after)
  const none = look.paint('dim', '(none)')
  const from = before === null ? none : value(was, 'red')
  const to = after === null ? none : value(is, 'green')
  return [`${indent}${plain(path)}: ${from} → ${to}`]
}

/** One value, cut only where lines have a width. */
export function single({ width }: ReportLook, value: Json): string {
  return width === undefined ? JSON.stringify(value) : excerpt(value)
}

function pair({ width }: ReportLook, before: Json, after: Json): readonly [string, string] {
  return width === undefined ? [JSON.stringify(before), JSON.stringify(after)] : excerpts(before, after)
}

/** What joined a list, what left it, and which fields of its items changed; nothing when only the order did. */
function describeList(
  look: ReportLook,
  indent: string,
  path: string,
  before: readonly Json[],
  after: readonly Json[],
): string[] {
  const had = byId(before)
  const has = byId(after)
  if (!had || !has) return describeMembers(look, indent, path, before, after)
  const gone = [...had].flatMap(([id, item]) => (has.has(id) ? [] : [item]))
  const come = [...has].flatMap(([id, item]) => (had.has(id) ? [] : [item]))
  const changed = [...has].flatMap(([id, item]) => {
    const old = had.get(id)
    return old ? diffFields(old, item, `${path}[${id}]`) : []
  })
  return [
    ...describeMembers(look, indent, path, gone, come),
    ...changed.flatMap((field) => describeField(look, indent, field)),
  ]
}

/** Items that are told apart by their ids; undefined where they are not. */
function byId(list: readonly Json[]): Map<string, JsonObject> | undefined {
  const items = new Map<string, JsonObject>()
  for (const item of list) {
    if (!isObject(item) || typeof item.id !== 'string' || items.has(item.id)) return undefined
    items.set(item.id, item)
  }
  return items
}

function describeMembers(
  look: ReportLook,
  indent: string,
  path: string,
  before: readonly Json[],
  after: readonly Json[],
): string[] {
  const had = new Map(before.map((item) => [JSON.stringify(item), item]))
  const has = new Map(after.map((item) => [JSON.stringify(item), item]))
  const gone = [...had].flatMap(([text, item]) => (has.has(text) ? [] : [item]))
  const come = [...has].flatMap(([text, item]) => (had.has(text) ? [] : [item]))
  if (gone.length + come.length === 0) return []
  // Of two that take each other's place, the difference has to show.
  const told = (item: Json, other: Json | undefined): string =>
    plain(other === undefined ? single(look, item) : pair(look, item, other)[0])
  return [
    `${indent}${plain(path)}:`,
    ...gone.map((item, i) => `${indent}  ${look.paint('red', `- ${told(item, come[i])}`)}`),
    ...come.map((item, i) => `${indent}  ${look.paint('green', `+ ${told(item, gone[i])}`)}`),
  ]
}
