// Revisions from the server-sent events of /watch.
import { createParser } from 'eventsource-parser'
import type { Revision } from '../../api/wire-types.ts'

/** The revisions of a stream until it ends or the connection breaks. */
export async function* revisionsIn(stream: AsyncIterable<Uint8Array>): AsyncGenerator<Revision> {
  for await (const data of eventsIn(stream, 'revision')) yield JSON.parse(data)
}

async function* eventsIn(stream: AsyncIterable<Uint8Array>, name: string): AsyncGenerator<string> {
  const received: string[] = []
  const parser = createParser({
    onEvent({ event, data }) {
      if (event === name) received.push(data)
    },
  })
  const decoder = new TextDecoder()
  try {
    for await (const bytes of stream) {
      parser.feed(decoder.decode(bytes, { stream: true }))
      yield* received.splice(0)
    }
  } catch {
    // A connection that breaks ends the stream: an event that is not complete comes again after a reconnect.
  }
}
