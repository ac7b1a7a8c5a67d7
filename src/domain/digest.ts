// A quick digest of text, to tell answers apart: made of parts, so that a poll hashes none of its bytes anew.

/** Two independent halves of 32 bits. Not for secrets: anyone can make two texts of equal digest. */
export type Digest = readonly [number, number]

export const EMPTY_DIGEST: Digest = [0x811c9dc5, 0x9747b28c]

export function digestOf(text: string): Digest {
  let [a, b] = EMPTY_DIGEST
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0x5bd1e995)
    b ^= b >>> 15
  }
  return [a >>> 0, b >>> 0]
}

/** Depends on the order of the parts. */
export function combine([a, b]: Digest, [c, d]: Digest): Digest {
  const mixed = Math.imul(b ^ d, 0x5bd1e995)
  return [Math.imul(a ^ c, 0x01000193) >>> 0, (mixed ^ (mixed >>> 13)) >>> 0]
}

export function formatDigest([a, b]: Digest): string {
  return a.toString(16).padStart(8, '0') + b.toString(16).padStart(8, '0')
}
