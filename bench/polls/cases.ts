// What is measured: which server is polled, by which clusters, and how.
import type { Target } from '../server-process.ts'

/** How a poll comes: on a connection of its own, as from Flux, with or without TLS, or on one that a proxy keeps. */
export type Style = 'new' | 'kept' | 'tls' | 'tls-x25519'

/** Whose answers: ours of a kind of fleet, with the token of all or one for each cluster; or a peer's. */
export type Server =
  | 'uniform'
  | 'lived-in'
  | 'lived-in, shared token'
  | 'lived-in, room for all answers'
  | 'lived-in, behind nginx'
  | 'node:http'
  | 'nginx'

export interface Measured {
  readonly server: Server
  /** Clusters of the fleet. */
  readonly size: number
  readonly style: Style
  readonly samples: Sample[]
}

export interface Case extends Measured {
  readonly target: Target
  /** Where requests go on to: its CPU counts, too. */
  readonly upstream?: Target | undefined
  readonly port: number
  /** File with the polls, as the client reads it. */
  readonly polls: string
}

export interface Sample {
  /** Microseconds of the server's CPU per poll. */
  readonly cpu: number
  /** Milliseconds. */
  readonly p99: number
  /** Microseconds of the client's CPU per poll. */
  readonly clientCpu: number
}

export function isPeer({ server }: Measured): boolean {
  return server === 'nginx' || server === 'node:http'
}

/** Of all rounds, in order. */
export function sorted(each: Measured, read: (sample: Sample) => number): number[] {
  return each.samples.map(read).sort((a, b) => a - b)
}

export function medianOf(
  each: Measured | undefined,
  read: (sample: Sample) => number = ({ cpu }) => cpu,
): number {
  const values = each ? sorted(each, read) : []
  return values[Math.floor(values.length / 2)] ?? Number.NaN
}
