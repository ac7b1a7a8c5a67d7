// Rollouts as copies of a part of the fleet hold them: the copy serves its clusters the same, and says nothing of others.
import type { Document } from '../types/resource-type.ts'
import type { DocumentEdit } from './edits.ts'
import { asDocument, asPlan, asRollout, type RolloutPlan, type WaveSpec } from './rollout.ts'

/** Whether a cluster is in the part. */
export type IsInPart = (cluster: string) => boolean

/** In the place of a member that is not in the part: the others keep theirs, since they are opened by it. */
const SOMEBODY = ''

export function partOfRollout(document: Document, isInPart: IsInPart): Document {
  const { grant: _, joined, spec, ...rollout } = asRollout({ document })
  return asDocument({
    ...rollout,
    spec: { ...spec, waves: spec.waves.map((wave) => partOfWave(wave)) },
    ...(joined && { joined: withoutOthers(joined, isInPart) }),
    skipped: rollout.skipped.filter(isInPart),
    set_aside: rollout.set_aside.filter(isInPart),
    // These are sentences, which may name any cluster.
    waiting_for: null,
    events: [],
    operation: 'copied in part',
  })
}

/** Selectors name clusters too. */
function partOfWave({ selector: _, clusters: __, ...wave }: WaveSpec): WaveSpec {
  return wave
}

export function partOfPlan(document: Document, clusters: string, isInPart: IsInPart): Document {
  const { id, edits, members } = asPlan({ document })
  const plan: RolloutPlan = {
    id,
    edits: edits.flatMap((edit): DocumentEdit[] => {
      if (edit.type !== clusters) return [edit]
      const ids = edit.ids.filter(isInPart)
      return ids.length > 0 ? [{ ...edit, ids }] : []
    }),
    operations: [],
    members: withoutOthers(members, isInPart),
  }
  return asDocument(plan)
}

function withoutOthers(waves: readonly (readonly string[])[], isInPart: IsInPart): string[][] {
  return waves.map((ids) => ids.map((id) => (isInPart(id) ? id : SOMEBODY)))
}

export function isSomebody(id: string): boolean {
  return id === SOMEBODY
}
