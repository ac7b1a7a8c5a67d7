// Reads one HTTP/1.1 response from the bytes of a connection.
import { gunzipSync } from 'node:zlib'
import type { ClusterAnswer } from './exchange.ts'

const END_OF_HEAD = Buffer.from('\r\n\r\n')
const LAST_CHUNK = '0\r\n\r\n'

export class ResponseReader {
  #bytes: Buffer = Buffer.alloc(0)
  #head: string | undefined
  #bodyAt = 0
  /** Undefined when the end of the body is told in another way. */
  #length: number | undefined
  #isChunked = false

  /** Takes more bytes; returns whether the response is whole. */
  push(bytes: Buffer): boolean {
    this.#bytes = this.#bytes.length === 0 ? bytes : Buffer.concat([this.#bytes, bytes])
    if (this.#head === undefined) this.#readHead()
    if (this.#head === undefined) return false
    if (this.#isChunked) return this.#bytes.toString('latin1', this.#bodyAt).endsWith(LAST_CHUNK)
    return this.#length !== undefined && this.#bytes.length - this.#bodyAt >= this.#length
  }

  /** The response when the connection has ended; undefined when something of it is missing. */
  end(): ClusterAnswer | undefined {
    const isWhole = this.#head !== undefined && !this.#isChunked && this.#length === undefined
    return isWhole ? this.answer() : undefined
  }

  answer(): ClusterAnswer {
    const packed = this.#isChunked ? joinChunks(this.#bytes.subarray(this.#bodyAt)) : this.#body()
    const body = (this.#header('content-encoding') === 'gzip' ? gunzipSync(packed) : packed).toString('utf8')
    const revision = this.#header('x-revision')
    const retryAfter = this.#header('retry-after')
    return {
      kind: 'answer',
      status: Number(this.#head?.slice(9, 12)),
      body,
      ...(revision !== undefined && { revision: Number(revision) }),
      ...(retryAfter !== undefined && { retryAfterMs: Number(retryAfter) * 1000 }),
    }
  }

  #readHead(): void {
    const end = this.#bytes.indexOf(END_OF_HEAD)
    if (end < 0) return
    this.#head = `${this.#bytes.toString('latin1', 0, end)}\r\n`
    this.#bodyAt = end + END_OF_HEAD.length
    this.#isChunked = this.#header('transfer-encoding') === 'chunked'
    const length = this.#header('content-length')
    this.#length = length === undefined ? undefined : Number(length)
  }

  #body(): Buffer {
    return this.#bytes.subarray(
      this.#bodyAt,
      this.#length === undefined ? undefined : this.#bodyAt + this.#length,
    )
  }

  #header(name: string): string | undefined {
    return new RegExp(`^${name}: *(.*?)\r$`, 'im').exec(this.#head ?? '')?.[1]
  }
}

function joinChunks(bytes: Buffer): Buffer {
  const chunks: Buffer[] = []
  for (let at = 0; ; ) {
    const end = bytes.indexOf('\r\n', at)
    const length = Number.parseInt(bytes.toString('latin1', at, end), 16)
    if (!(length > 0)) return Buffer.concat(chunks)
    chunks.push(bytes.subarray(end + 2, end + 2 + length))
    at = end + 2 + length + 2
  }
}
