// Sends the steps of a set as a batch; refusals name files and documents instead of operations.
import { Failure } from '../failure.ts'
import type { WriteFlags } from '../input/write-flags.ts'
import { Refusal } from '../server/refusal.ts'
import { type Sent, sendBatch } from '../server/send-change.ts'
import type { Session } from '../session.ts'
import type { Step } from './apply-set.ts'

/** Sends steps as one batch; with a size, progress is shown. */
export function sendSteps(
  session: Session,
  flags: WriteFlags,
  steps: readonly Step[],
  size?: number,
): Promise<Sent> {
  const operations = steps.map(({ operation }) => operation)
  return sendBatch(session, flags, operations, size)
}

/** Runs a call; a refusal is thrown in terms of the files. */
export async function inTermsOfFiles<T>(steps: readonly Step[], call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw error instanceof Refusal ? namingFiles(error, steps) : error
  }
}

/** A refusal that names the file and the document instead of the operation. */
export function namingFiles(refusal: Refusal, steps: readonly Step[]): Failure {
  const { exitCode, message, details, hint } = refusal
  const translate = (text: string): string =>
    text.replaceAll(/\/operations\/(\d+)(?:\/(?:document|patch)(?=[/ ]|$))?/g, (all, number: string) => {
      const { wanted } = steps[Number(number)] ?? {}
      return wanted ? `${wanted.source}: ${wanted.type}/${wanted.id} ` : all
    })
  return new Failure(exitCode, translate(message), {
    details: details.map(translate),
    hint,
    steps: refusal.steps,
  })
}
