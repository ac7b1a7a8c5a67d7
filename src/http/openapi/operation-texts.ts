// What each operation of the API does beyond its summary, for readers of its description.

const PREVIEW = 'With dry_run nothing is stored, and the answer is a preview of the changes and their impact.'
const LOCKED =
  'With If-Match it is done only while the document has that ETag; otherwise the last write wins.'

/** By the id of the operation, without the name of a type at its end. */
const TEXTS: Readonly<Record<string, string>> = {
  poll_clusters:
    'For a provider of the Flux Operator that is to see every cluster. Deleted clusters are left out; limit, offset and the filters keep the answer small.',
  poll: "Asked by the cluster's Flux Operator. The order of inputs and of their fields is fixed, so that the bytes change only with the inputs. An unknown or purged cluster fails with 404, and Flux keeps what it has.",

  list: 'Ordered by id, a page at a time: limit and offset choose it, X-Total-Count and Link tell of the rest. With at, as it was then.',
  create: `Fields that are left out take their defaults. An id that exists already fails with 409. ${PREVIEW}`,
  get: 'The ETag of the answer is for If-Match of a write, and for If-None-Match of the next read. With at, as it was then.',
  replace: `Replaces all of it: fields that are left out take their defaults. An unknown id fails with 404, unless If-None-Match: * says that it is to be created. ${LOCKED} ${PREVIEW}`,
  patch: `A merge patch (RFC 7396, as application/json too) changes the fields that it names, and null removes one. A JSON patch (RFC 6902) is a list of operations. ${LOCKED} ${PREVIEW}`,
  delete: `Returns what was deleted. A definition that clusters use fails with 409, unless cascade takes it from them. ${LOCKED} ${PREVIEW}`,
  delete_clusters: `Leaves a tombstone: polls get an empty list, and Flux removes everything that it had rendered. purge leaves none, and polls fail with 404. ${LOCKED} ${PREVIEW}`,
  history:
    'Also of documents that are gone. Each revision has only its change of this document; before leads to the next page.',

  restore_clusters: `The tombstone gives way to the cluster as it was, with its definitions as they are now. ${PREVIEW}`,
  bootstrap_clusters:
    'Several YAML documents: the input providers and ResourceSets of all types, and Flux itself unless that is left out.',
  inputs_clusters:
    'For people: the same bytes that the cluster gets, for whoever may read. With explain, the source, revision and author of each field instead.',
  get_assigned:
    'The id, and the fields in which the document differs on this cluster. The ETag is that of the cluster.',
  assign: `Assigning again replaces the reference, and keeps its place in the list. ${PREVIEW}`,
  override: `A merge patch of the reference; null gives an override up, and the definition counts again. ${PREVIEW}`,
  unassign: `Also removes the cluster's values for it. The last of a type has to be confirmed. ${PREVIEW}`,
  get_patches: 'By variable or Helm path. The ETag is that of the cluster.',
  replace_patches: `Values that are not named are removed. ${PREVIEW}`,
  change_patches: `Values that are not named stay as they are. ${PREVIEW}`,
  delete_patches: `The component then has its own values only. ${PREVIEW}`,

  list_revisions:
    'Each with its first 20 changes; change_count says how many there are. Filters go together, and before leads to the next page.',
  verify_revisions:
    'Computes every hash of the log again, and compares the documents with what the log makes of them. Takes a while on a long log.',
  get_revision:
    'Its changes a page at a time: limit and offset choose the page. impact_limit is how many details of its impact there are at most.',
  revert_revision: `Makes one new revision that undoes that one. A document that was changed again since fails with 409. ${PREVIEW}`,
  rollback: `Makes one new revision; history stays as it is. selector, types and ids keep it to a part of the fleet. ${PREVIEW}`,
  batch: `At most 100,000 operations and 32 MiB. Each sees what those before it did; when one fails, nothing is done, and details point at it. ${PREVIEW}`,
  watch_revisions:
    'Each event is one revision. A client that comes back sends the last id as Last-Event-ID, and misses nothing.',
  copy_log:
    'For tokens of the role mirror or admin. It holds what other roles never see, such as the digests of tokens.',

  list_tokens: 'A page at a time: limit and offset choose it, X-Total-Count and Link tell of the rest.',
  create_token: `The secret is in this answer and nowhere else. Each role takes the fields that limit it: cluster for a cluster, selector for a mirror, selector and types for an editor. ${PREVIEW}`,
  get_token: 'By id or name, with when and from where it was last used.',
  revoke_token: `In force in every process within moments. ${PREVIEW}`,
  rotate_token: `Both secrets are valid until grace is over, so that callers can change one by one. ${PREVIEW}`,
  whoami: 'The role and scope that the credential of this request gives, and until when.',

  health: 'For liveness probes: it asks for nothing but an answer.',
  ready: 'For readiness probes and load balancers.',
  metrics: 'In the text format of Prometheus; their names are in the documentation.',
  openapi_json: 'Of the routes that this process serves, with those of its own types.',
  openapi_yaml: 'Of the routes that this process serves, with those of its own types.',
}

/** Of the longest name that the id begins with; undefined for an operation that nobody has described. */
export function describeOperation(id: string): string | undefined {
  const words = id.split('_')
  const names = words.map((_word, i) => words.slice(0, words.length - i).join('_'))
  return names.map((name) => TEXTS[name]).find((text) => text !== undefined)
}
