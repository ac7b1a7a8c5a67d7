// The manifests of a bootstrap bundle, as text and as values.
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { POLL_BASE } from '../../base/urls.ts'

const SEPARATOR = /(?<=\n)---\n/
/** The URL of a provider that polls without TLS. */
const PLAIN_POLL = new RegExp(`(?<=\\n) {2}url: http:[^\\n]*${POLL_BASE}/`)
/** The last line of the Secret that a bundle leaves empty. */
const EMPTY_SECRET = /(?<=\n)type: Opaque\n/
/** Comments before a manifest: those of the Secret ask for the token. */
const COMMENTS = /^(?:#.*\n|\n)*/

/** The bundle with a token in its empty Secret: the Flux Operator reads `token`, what sends events reads `headers`. */
export function fillSecret(bundle: string, secret: string): string {
  const encode = (text: string): string => Buffer.from(text).toString('base64')
  const data = `data:\n  token: ${encode(secret)}\n  headers: ${encode(`Authorization: Bearer ${secret}`)}\n`
  const manifests = bundle.split(SEPARATOR)
  const first = manifests.findIndex((manifest) => EMPTY_SECRET.test(manifest))
  const filled = (empty: string): string =>
    empty.replace(COMMENTS, '').replace(EMPTY_SECRET, (line) => `${line}${data}`)
  return manifests.map((manifest, i) => (i === first ? filled(manifest) : manifest)).join('---\n')
}

/**
 * The part of a bundle that is the cluster's own: the identity and a Secret, which follow the namespace. The namespace is
 * that of the shared bundle, so that applying one file takes nothing away that the other has set.
 */
export function identityIn(
  bundle: string,
  of: { readonly shared: string; readonly withSecret: boolean },
): string {
  const [, namespace = ''] = of.shared.split(SEPARATOR)
  const own = bundle.split(SEPARATOR).slice(2, of.withSecret ? 4 : 3)
  return [namespace, ...own].join('---\n')
}

/** Whether clusters with this bundle poll without TLS. */
export function pollsInPlain(bundle: string): boolean {
  return PLAIN_POLL.test(bundle)
}

/** Parses manifests as Kubernetes does: YAML 1.1, with times as texts. */
export async function parseManifests(bundle: string): Promise<JsonObject[]> {
  const { parseAllDocuments } = await import('yaml')
  const documents = parseAllDocuments(bundle, {
    version: '1.1',
    customTags: (tags) =>
      tags.filter((tag) => typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:timestamp'),
  })
  return documents.map((document) => document.toJS() as Json).filter(isObject)
}
