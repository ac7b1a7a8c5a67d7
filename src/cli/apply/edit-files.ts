// Changes of values in YAML and JSON files that leave all else as it is, comments included.
import type { Document } from 'yaml'
import { isObject, type Json } from '../../base/json.ts'
import { parseText, readText } from '../input/read-files.ts'
import type { Noun } from '../server/nouns.ts'
import { documentsIn } from './apply-set.ts'
import type { Place } from './three-way.ts'

/** A value for a place in a document of a file; undefined removes it. */
export interface Edit {
  readonly type: string
  readonly id: string
  readonly place: Place
  readonly value: Json | undefined
}

type Path = readonly (string | number)[]

/** The text of a file after the edits of its documents; undefined where there are none. */
export async function editText(
  nouns: readonly Noun[],
  file: string,
  edits: readonly Edit[],
): Promise<string | undefined> {
  const text = readText(file)
  const yaml = await import('yaml')
  const isJson = file.endsWith('.json')
  const documents: Document[] = isJson
    ? [new yaml.Document(JSON.parse(text))]
    : [...yaml.parseAllDocuments(text, { merge: true })].map((each) => each as Document)
  let isEdited = false
  for (const document of documents) {
    for (const { type, id, path } of placesIn(nouns, document.toJS() as Json)) {
      for (const edit of edits.filter((each) => each.type === type && each.id === id)) {
        put(document, path, edit, yaml)
        isEdited = true
      }
    }
  }
  if (!isEdited) return undefined
  if (isJson) return `${JSON.stringify(documents[0]?.toJS(), null, 2)}\n`
  const edited = documents.map((each) => each.toString({ lineWidth: 0 })).join('')
  await parseText(edited, file)
  return edited
}

interface Placed {
  readonly type: string
  readonly id: string
  readonly path: Path
}

/** Where the documents of a value are: itself, items of a list, or lists by type. */
function placesIn(nouns: readonly Noun[], value: Json, path: Path = []): Placed[] {
  if (value === null) return []
  if (Array.isArray(value)) return value.flatMap((item, i) => placesIn(nouns, item, [...path, i]))
  if (!isObject(value)) return []
  if (typeof value.type !== 'string')
    return Object.entries(value).flatMap(([name, list]) =>
      (list as Json[]).flatMap((item, i) =>
        documentsIn(nouns, { value: { [name]: [item] }, source: '' }).map(({ type, id }) => ({
          type,
          id,
          path: [...path, name, i],
        })),
      ),
    )
  const isWrapped = isObject(value.document) && Object.keys(value).length === 2
  return documentsIn(nouns, { value, source: '' }).map(({ type, id }) => ({
    type,
    id,
    path: isWrapped ? [...path, 'document'] : path,
  }))
}

function put(
  document: Document,
  start: Path,
  { place, value }: Edit,
  { isSeq, isScalar }: typeof import('yaml'),
): void {
  const path: (string | number)[] = [...start]
  for (const step of place) {
    if (typeof step === 'string') {
      path.push(step)
      continue
    }
    const list = document.getIn(path)
    if (!isSeq(list)) return
    const at = list.items.findIndex((_, i) => document.getIn([...path, i, 'id']) === step.id)
    path.push(at === -1 ? list.items.length : at)
  }
  const node = document.getIn(path, true)
  if (value === undefined) document.deleteIn(path)
  // A scalar that stays one keeps its comment and its quotes.
  else if (isScalar(node) && (value === null || typeof value !== 'object')) node.value = value
  else document.setIn(path, document.createNode(value))
}
