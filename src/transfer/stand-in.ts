// A store in the place of one that is not there yet.
import type { Store } from '../store/store.ts'

/** What the stand-in does itself. */
type Own = Pick<Store, 'head' | 'watch' | 'close'>

/** Everything else goes to the store that there is by then; `current` throws while there is none. */
export function standInFor(current: () => Store, own: Own): Store {
  return {
    ...own,
    load: (take) => current().load(take),
    documents: () => current().documents(),
    hashOf: (revision) => current().hashOf(revision),
    commit: (base, ...revisions) => current().commit(base, ...revisions),
    withWriteLock: (run) => current().withWriteLock(run),
    initFromSnapshot: (anchor, documents) => current().initFromSnapshot(anchor, documents),
    changesSince: (revision) => current().changesSince(revision),
    history: (query) => current().history(query),
    log: (since, until) => current().log(since, until),
    changedAfter: (revision, only) => current().changedAfter(revision, only),
    revisionAt: (time) => current().revisionAt(time),
    anchor: () => current().anchor(),
    prune: (anchor) => current().prune(anchor),
    recall: (key, now) => current().recall(key, now),
    remember: (remembered) => current().remember(remembered),
    answers: (now) => current().answers(now),
    usesOf: (ids) => current().usesOf(ids),
    recordUses: (uses) => current().recordUses(uses),
    acquire: (name, holder, ms) => current().acquire(name, holder, ms),
    release: (lease) => current().release(lease),
  }
}
