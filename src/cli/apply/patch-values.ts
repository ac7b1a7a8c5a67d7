// Sets values of a component on clusters, by flags: what `NOUN patch` and `demo patch-component` do.
import { usage } from '../failure.ts'
import { parsePair } from '../input/field-values.ts'
import { describeTargets, needTargets, type TargetFlags } from '../input/targets.ts'
import type { WriteFlags } from '../input/write-flags.ts'
import { printFleetWrite } from '../output/write-report.ts'
import { sendBatch } from '../server/send-change.ts'
import type { Session } from '../session.ts'

export type PatchFlags = WriteFlags &
  TargetFlags & {
    readonly set?: readonly string[]
    readonly unset?: readonly string[]
    readonly replace?: boolean
  }

export async function patchValues(session: Session, component: string, flags: PatchFlags): Promise<void> {
  const targets = needTargets(flags)
  const { set = [], unset = [], replace } = flags
  if (set.length + unset.length === 0 && !replace)
    throw usage('which values? Give --set key=value or --unset key')
  const pairs = set.map((text) => parsePair(text, '--set'))
  const both = unset.find((key) => pairs.some(([each]) => each === key))
  if (both !== undefined) throw usage(`${both} is both set and unset`)
  const values = Object.fromEntries([...pairs, ...unset.map((key): [string, null] => [key, null])])
  const operation = {
    op: 'patch_values',
    component,
    values,
    ...(replace && { replace: true }),
    ...targets,
  }
  const sent = await sendBatch(session, flags, [operation])
  await printFleetWrite(session, sent, `patch values of ${component} on ${describeTargets(targets)}`)
}
