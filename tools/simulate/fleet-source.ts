// Where a simulated fleet comes from: what it polls, which clusters it has, and what they should get.
import type { Target } from './operator-request.ts'
import type { Oracle } from './oracle.ts'

export interface FleetSource {
  readonly target: Target
  readonly clusters: readonly Caller[]
  /** May read the status of all of them. */
  readonly token: string
  readonly oracle: Oracle
  /** What the service has used so far; undefined when it is not ours, or the system does not tell. */
  cost(): ServiceCost | undefined
  close(): Promise<void>
}

/** A cluster, and the token that it shows. */
interface Caller {
  readonly id: string
  readonly dns: string
  readonly token: string
}

export interface ServiceCost {
  readonly cpuSeconds: number
  readonly rssMegabytes: number
  readonly peakRssMegabytes: number
}
