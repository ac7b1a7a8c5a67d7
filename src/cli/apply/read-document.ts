// One document of a type, from a file.
import { isObject, type JsonObject } from '../../base/json.ts'
import { usage } from '../failure.ts'
import { readOne } from '../input/read-files.ts'
import type { Terminal } from '../output/terminal.ts'
import type { Noun } from '../server/nouns.ts'
import { isWrapped, withoutType } from './apply-set.ts'

export async function readDocument(
  terminal: Terminal,
  noun: Noun,
  file: string,
): Promise<{ readonly document: JsonObject; readonly id: string | undefined }> {
  const read = await readOne(terminal, file)
  if (!isObject(read)) throw usage(`${file} must hold an object: the fields of the document`)
  const document = ofThisType(noun, read, file)
  return { document, id: typeof document.id === 'string' ? document.id : undefined }
}

/** The document of a file; one that names its type must be of this type. */
function ofThisType({ name, schema }: Noun, read: JsonObject, file: string): JsonObject {
  const isOwnField = Object.hasOwn(schema.properties ?? {}, 'type') && !isWrapped(read)
  if (read.type === undefined || isOwnField) return read
  if (read.type !== name)
    throw usage(`${file} holds a document of ${JSON.stringify(read.type)}, not of ${name}`)
  return withoutType(read)
}
