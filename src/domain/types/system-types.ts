// The types that the service itself works with, each with what is special about it.
import { isObject } from '../../base/json.ts'
import { named } from '../../base/sentences.ts'
import { asToken, TOKENS, withoutSecrets } from '../access/token.ts'
import { HOLDS } from '../rollouts/hold.ts'
import { partOfPlan, partOfRollout } from '../rollouts/partial-rollout.ts'
import { asPlan, asRollout, ROLLOUT_PLANS, ROLLOUTS, withoutInstants } from '../rollouts/rollout.ts'
import {
  type Document,
  type DocumentName,
  idsIn,
  type SystemType,
  type SystemTypes,
  type Types,
} from './resource-type.ts'

export const TOKEN_TYPE: SystemType = {
  name: TOKENS,
  singular: 'token',
  isSearchable: true,
  inPartialCopies: true,
  clusterOf(document) {
    const { role, cluster } = asToken(document)
    return role === 'cluster' ? cluster : undefined
  },
  redact: (document) => withoutSecrets(asToken(document)) as unknown as Document,
  planned(document) {
    const { id, name, role, cluster, selector, types, expires_at } = asToken(document)
    return { id, name, role, cluster, selector, types, expires_at }
  },
  // A revoked or replaced secret never becomes valid again.
  irreversible: {
    mayStay: (before, after) => before !== undefined && after === undefined,
    reason: 'token_not_restorable',
    refusal: (revision) =>
      `revision ${revision} changed a token, and tokens do not come back: revoke it, or create another one`,
    warning(revoked) {
      const names = revoked.map((document) => asToken(document).name).sort()
      return `tokens that were revoked with their cluster do not come back: ${named(names)}; create others`
    },
  },
  indexKeys: (document) => asToken(document).secrets.map(({ hash }) => hash),
  operations: ['create_token', 'rotate_token', 'issue_token', 'revoke_token'],
  gaugeHelp: 'Named tokens, those that have expired included.',
}

/** The type of the document that says which part of another log this store holds, and up to which revision. */
export const SOURCES = 'sources'

const SOURCE_TYPE: SystemType = {
  name: SOURCES,
  singular: 'source',
  isSearchable: false,
  inPartialCopies: false,
  // Every copied revision changes it: it holds the revision that the copy has reached, which a revert does not alter.
  irreversible: 'ignored',
}

const ROLLOUT_TYPE: SystemType = {
  name: ROLLOUTS,
  singular: 'rollout',
  isSearchable: true,
  inPartialCopies: true,
  partOf: (document, _clusters, isInPart) => partOfRollout(document, isInPart),
  // With what it acts is nothing to read.
  redact({ grant: _, ...document }) {
    return document
  },
  planned: (document) => withoutInstants(asRollout({ document })),
  irreversible: {
    mayStay: () => true,
    reason: 'not_reverted',
    refusal: (revision) =>
      `revision ${revision} is a step of a rollout, and changed no document: pause, amend or abort the rollout`,
    warning: (rollouts) =>
      `what became of rollout ${named(rollouts.map(({ id }) => id))} stays: only its changes are reverted`,
  },
  operations: ['put_rollout', 'act_on_rollout', 'finish_rollout'],
  gaugeHelp: 'Rollouts, those that have ended included.',
}

const PLAN_TYPE: SystemType = {
  name: ROLLOUT_PLANS,
  singular: 'plan of a rollout',
  isSearchable: false,
  inPartialCopies: true,
  partOf: partOfPlan,
  redact(document) {
    const { id, edits, members } = asPlan({ document })
    return { id, edits: edits.length, members: members.map((wave) => wave.length) }
  },
  irreversible: 'ignored',
}

const HOLD_TYPE: SystemType = {
  name: HOLDS,
  singular: 'hold',
  isSearchable: true,
  inPartialCopies: true,
  clusterOf: ({ id }) => id,
  redact({ documents: _, ...document }) {
    return document
  },
  planned({ since: _, ...document }) {
    return document
  },
  irreversible: {
    mayStay: () => true,
    reason: 'not_reverted',
    refusal: (revision) =>
      `revision ${revision} held or released clusters, and changed no document: hold or release them`,
    warning: () => 'holds that it set or released stay as they are now',
  },
  operations: ['hold_cluster', 'release_cluster'],
  gaugeHelp: 'Clusters that are held at what they were served.',
}

/** System types without a resource file. */
export const SYSTEM_TYPES: readonly SystemType[] = [
  TOKEN_TYPE,
  SOURCE_TYPE,
  ROLLOUT_TYPE,
  PLAN_TYPE,
  HOLD_TYPE,
]

/**
 * The system type of a resource file that keeps an inventory: it names documents of the whole fleet, so no partial copy
 * holds it.
 */
export function inventoryType(name: string, singular: string): SystemType {
  return { name, singular, isSearchable: true, inPartialCopies: false, holds: documentsHeld }
}

/** An inventory lists ids by type, under `documents`. */
function* documentsHeld({ documents = {} }: Document): Generator<DocumentName> {
  for (const [type, ids] of Object.entries(isObject(documents) ? documents : {}))
    for (const id of idsIn(ids)) yield { type, id }
}

export function systemTypes(all: readonly SystemType[]): SystemTypes {
  const byName = new Map(all.map((type) => [type.name, type]))
  return { all, get: (name) => byName.get(name) }
}

/** Names of all types whose changes can be searched for. */
export function searchableTypes({ all, system }: Types): string[] {
  const own = system.all.filter(({ isSearchable }) => isSearchable)
  return [...new Set([...all, ...own].map(({ name }) => name))]
}
