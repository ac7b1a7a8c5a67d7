// Requests as bytes, ready to be sent as often as somebody likes.

/** The bytes of the n-th request, for whoever has this token. */
export type Request = (token: string | undefined) => (n: number) => Buffer

export const JSON_PATCH = 'application/json-patch+json'
export const MB = 1_000_000

export function bytes(token: string | undefined, line: string, headers = '', body?: string): Buffer {
  const bearer = token === undefined ? '' : `Authorization: Bearer ${token}\r\n`
  const length = body === undefined ? '' : `Content-Length: ${body.length}\r\n`
  const head = `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\n${bearer}${headers}${length}\r\n`
  return Buffer.from(head + (body ?? ''), 'latin1')
}

/** The same each time. */
export function get(path: string, headers = '', times = 1): Request {
  return (token) => {
    const same = Buffer.from(bytes(token, `GET ${path}`, headers).toString('latin1').repeat(times), 'latin1')
    return () => same
  }
}

/** Bodies are made where they are sent: some have 31 MB. */
export function send(line: string, body: () => string, type = 'application/json'): Request {
  return (token) => {
    const same = bytes(token, line, `Content-Type: ${type}\r\n`, body())
    return () => same
  }
}

/** Another body each time, as a change that changes nothing is not written. */
export function write(line: (n: number) => string, body: (n: number) => unknown): Request {
  const type = 'Content-Type: application/json\r\n'
  return (token) => (n) => bytes(token, line(n), type, JSON.stringify(body(n)))
}

export function batch(operations: () => string): Request {
  return send('POST /batch', () => `{"dry_run":true,"operations":[${operations()}]}`)
}

/** An item many times over, up to a length. */
export function list(item: string, length: number): string {
  return `${`${item},`.repeat(Math.floor(length / (item.length + 1)) - 1)}${item}`
}

export function keys(count: number, prefix: string): string {
  return Array.from({ length: count }, (_, i) => `"${prefix}${i}":"x"`).join(',')
}

/** Only the head, and the first byte of what it announces. */
export function half(token: string | undefined): () => Buffer {
  const head = 'Content-Type: application/json\r\nContent-Length: 1000\r\n'
  const same = Buffer.concat([bytes(token, 'POST /batch', head), Buffer.from('{')])
  return () => same
}

/** A JSON Patch in which each copy holds all of the copies before it. */
export function copies(count: number): string {
  const start = { op: 'add', path: '/labels', value: { a: Array(300).fill({}) } }
  const copy = (i: number) => ({ op: 'copy', from: '/labels', path: `/labels/k${i}` })
  return JSON.stringify([start, ...Array.from({ length: count }, (_, i) => copy(i))])
}

/** A JSON Patch that moves something large to and fro. */
export function moves(): string {
  const value = `{"a":[${list('{}', MB)}]}`
  const there = '{"op":"move","from":"/labels","path":"/annotations"}'
  const back = '{"op":"move","from":"/annotations","path":"/labels"}'
  return `[{"op":"add","path":"/labels","value":${value}},${list(`${there},${back}`, 2 * MB)}]`
}
