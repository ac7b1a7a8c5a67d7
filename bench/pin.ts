// Servers on one core, and who keeps them busy on another: neither takes time that the other is measured by.
import { execFileSync, spawnSync } from 'node:child_process'
import { availableParallelism } from 'node:os'

export const SERVER_CORE = '0'
export const CLIENT_CORE = '1'

/** `taskset` is there, and so are two cores. */
export const CAN_PIN = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0

/** Keeps all threads of a process on a core. */
export function pin(pid: number, core: string): void {
  execFileSync('taskset', ['-a', '-c', '-p', core, String(pid)], { stdio: 'ignore' })
}
