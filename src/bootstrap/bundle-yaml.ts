// Manifests as YAML that Kubernetes reads as it is meant.
import { isMap, Document as Manifest, Scalar, stringify } from 'yaml'

/** For Kubernetes, which reads YAML 1.1: `no` is a text only in quotes. */
const YAML = { version: '1.1' } as const

export function manifest(content: object): Manifest {
  // Go reads more texts as numbers than the YAML specification does.
  const quoteNumbers = (_key: unknown, value: unknown): unknown =>
    typeof value === 'string' && /^[\d.+-]/.test(value) ? quoted(value) : value
  return new Manifest(content, quoteNumbers, YAML)
}

export function quoted(text: string): Scalar {
  const scalar = new Scalar(text)
  scalar.type = 'QUOTE_DOUBLE'
  return scalar
}

export function toText(of: Manifest): string {
  return of.toString({ lineWidth: 0 })
}

/** Text for a template, whose actions stand where values will be. */
export function templateText(content: object): string {
  return stringify(content, { ...YAML, lineWidth: 0 })
}

/** A copy of a manifest with these annotations beside its own. */
export function annotated(
  original: Manifest,
  annotations: Readonly<Record<string, string | Scalar>>,
): Manifest {
  const copy = original.clone()
  const place = ['metadata', 'annotations']
  // The annotations are missing, or an alias.
  if (!isMap(copy.getIn(place, true))) {
    const { annotations: own } = original.toJS().metadata
    copy.setIn(place, copy.createNode(own ?? {}))
  }
  for (const [name, value] of Object.entries(annotations)) copy.setIn([...place, name], value)
  return copy
}
