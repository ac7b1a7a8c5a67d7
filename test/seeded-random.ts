// Chance that can be repeated.

export interface Random {
  /** From 0 to 1, without 1. */
  next(): number
  /** A whole number from 0, below this one. */
  below(end: number): number
  pick<T>(from: readonly T[]): T
}

/** The same from the same seed (mulberry32). */
export function createRandom(seed: number): Random {
  let a = seed
  function next(): number {
    a = (a + 0x6d2b79f5) | 0
    let t = Math.imul(a ^ (a >>> 15), 1 | a)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
  const below = (end: number): number => Math.floor(next() * end)
  return { next, below, pick: <T>(from: readonly T[]): T => from[below(from.length)] as T }
}
