// Fields with two values, in lines for people.
import { diffFields, type FieldChange } from '../../base/diff.ts'
import { excerpt, excerpts, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Look } from './print.ts'
import { plain, type Style } from './terminal.ts'

/** The layout of a report: values are cut where lines have a width. */
export type ReportLook = Pick<Look, 'paint' | 'width'>

export function describeField(look: ReportLook, indent: string, field: FieldChange): string[] {
  const { path, before, after } = field
  const value = (text: string, style: Style): string => look.paint(style, plain(text))
  if (Array.isArray(before) && Array.isArray(after)) {
    const lines = describeList(look, indent, path, before, after)
    if (lines.length > 0) return lines
  }
  const [oldText, newText] = pair(look, before, after)
  const none = look.paint('dim', '(none)')
  const from = before === null ? none : value(oldText, 'red')
  const to = after === null ? none : value(newText, 'green')
  return [`${indent}${plain(path)}: ${from} → ${to}`]
}

/** Renders one value, cut only where lines have a width. */
export function single({ width }: ReportLook, value: Json): string {
  return width === undefined ? JSON.stringify(value) : excerpt(value)
}

function pair({ width }: ReportLook, before: Json, after: Json): readonly [string, string] {
  return width === undefined ? [JSON.stringify(before), JSON.stringify(after)] : excerpts(before, after)
}

/** Lines for items that were added, removed or changed; none when only the order changed. */
function describeList(
  look: ReportLook,
  indent: string,
  path: string,
  before: readonly Json[],
  after: readonly Json[],
): string[] {
  const oldItems = byId(before)
  const newItems = byId(after)
  if (!oldItems || !newItems) return describeMembers(look, indent, path, before, after)
  const removed = [...oldItems].flatMap(([id, item]) => (newItems.has(id) ? [] : [item]))
  const added = [...newItems].flatMap(([id, item]) => (oldItems.has(id) ? [] : [item]))
  const changed = [...newItems].flatMap(([id, item]) => {
    const old = oldItems.get(id)
    return old ? diffFields(old, item, `${path}[${id}]`) : []
  })
  return [
    ...describeMembers(look, indent, path, removed, added),
    ...changed.flatMap((field) => describeField(look, indent, field)),
  ]
}

/** The items of a list by id; undefined where they have none, or one twice. */
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
  const oldItems = new Map(before.map((item) => [JSON.stringify(item), item]))
  const newItems = new Map(after.map((item) => [JSON.stringify(item), item]))
  const removed = [...oldItems].flatMap(([text, item]) => (newItems.has(text) ? [] : [item]))
  const added = [...newItems].flatMap(([text, item]) => (oldItems.has(text) ? [] : [item]))
  if (removed.length + added.length === 0) return []
  // Of two items that replace each other, the excerpts show where they differ.
  const rendered = (item: Json, other: Json | undefined): string =>
    plain(other === undefined ? single(look, item) : pair(look, item, other)[0])
  return [
    `${indent}${plain(path)}:`,
    ...removed.map((item, i) => `${indent}  ${look.paint('red', `- ${rendered(item, added[i])}`)}`),
    ...added.map((item, i) => `${indent}  ${look.paint('green', `+ ${rendered(item, removed[i])}`)}`),
  ]
}
