// Takes what is wrong out of a resource file, so that its other mistakes are found in the same run.
import type { ErrorObject } from 'ajv/dist/2020.js'
import { checkResourceFile, type ResourceFile } from './resource-file.ts'

/** A file with more mistakes than this is corrected in several runs. */
const MAX_MISTAKES = 200

type Node = Record<string, unknown>

/** Returns the file without its mistakes; undefined where too little is left to be checked. */
export function withoutMistakes(content: unknown): ResourceFile | undefined {
  const root = { file: structuredClone(content) }
  for (let i = 0; i < MAX_MISTAKES; i++) {
    if (checkResourceFile(root.file)) return root.file as ResourceFile
    const [error] = checkResourceFile.errors ?? []
    if (!error || root.file === undefined) return undefined
    if (!fillIn(root.file as Node, error)) cut(root, error)
  }
  return undefined
}

/** Fills in a value that the rest of the file does not depend on; returns whether it did. */
function fillIn(file: Node, { keyword, params, instancePath }: ErrorObject): boolean {
  const [place, missing] = [`${instancePath}/${params.missingProperty}`, keyword === 'required']
  if (missing && place === '/apiVersion') file.apiVersion = 'v1'
  else if (missing && place === '/schema/key') (file.schema as Node).key = { name: 'id' }
  else if (keyword === 'pattern' && instancePath === '/kind')
    file.kind = `kind_${String(file.kind)
      .toLowerCase()
      .replaceAll(/[^a-z0-9]/g, '_')}`
  else return false
  return true
}

function cut(root: Node, { keyword, params, instancePath }: ErrorObject): void {
  const keys = ['file', ...instancePath.split('/').slice(1).map(unescapeKey)]
  const extra = keyword === 'additionalProperties' ? params.additionalProperty : undefined
  const dependent = keyword === 'dependentRequired' ? params.property : undefined
  const surplus = extra ?? dependent
  const path = surplus === undefined ? keys : [...keys, surplus]
  const last = path.at(-1) as string
  const parent = path.slice(0, -1).reduce<Node>((node, key) => node[key] as Node, root)
  // A field with an invalid schema is still a field of that name.
  if (keyword === 'type' && params.type === 'object') parent[last] = {}
  else if (Array.isArray(parent)) parent.splice(Number(last), 1)
  else delete parent[last]
}

function unescapeKey(key: string): string {
  return key.replaceAll('~1', '/').replaceAll('~0', '~')
}
