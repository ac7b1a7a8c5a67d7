// A quick digest of text, to tell answers apart: made of parts, so that a poll hashes none of its bytes anew.

/** Two halves of 32 bits. Not for secrets: anyone can make two texts of equal digest. */
export interface Digest {
  readonly a: number
  readonly b: number
}

/** Takes in text, or the digests of texts, in order. */
export class Digester implements Digest {
  // Kept as signed integers: V8 stores those without allocating.
  a = 0x011c9dc5
  b = 0x1747b28c

  add({ a, b }: Digest): this {
    this.a = Math.imul(this.a ^ a, 0x01000193)
    this.b = Math.imul(this.b ^ b, 0x5bd1e995)
    this.b ^= this.b >>> 15
    return this
  }

  addText(text: string): this {
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i)
      this.a = Math.imul(this.a ^ code, 0x01000193)
      this.b = Math.imul(this.b ^ code, 0x5bd1e995)
      this.b ^= this.b >>> 15
    }
    return this
  }
}

export function digestOf(text: string): Digest {
  const { a, b } = new Digester().addText(text)
  return { a, b }
}
