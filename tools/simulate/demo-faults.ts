// What is wrong in the demo fleet: one cluster with a component that fails, and one that is heard of no more.
import type { PlannedFault } from './simulated-cluster.ts'

export const DEMO_INTERVAL_MS = 10_000

interface DemoFaults {
  readonly dns: string
  /** Milliseconds between polls, where they differ. */
  readonly interval?: number
  /** Times from the cluster's first poll on, in milliseconds. */
  readonly plan: readonly PlannedFault[]
}

export const DEMO_FAULTS: readonly DemoFaults[] = [
  {
    dns: 'qa-eu-01.k8s.example.com',
    plan: [{ at: 0, fault: { kind: 'fail', component: 'kyverno' } }],
  },
  {
    // Its polls were so frequent that their absence is noticed soon.
    dns: 'uat-us-01.k8s.example.com',
    interval: 2000,
    plan: [{ at: 7000, fault: { kind: 'away' } }],
  },
]
