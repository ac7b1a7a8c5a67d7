// Servers of a test's own, on a free port and gone after the test: any answers, or a service with something in between.
import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export async function serve(
  t: TestContext,
  handle: RequestListener,
): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer(handle).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server }
}

export type Hook = (request: IncomingMessage) => unknown

export interface Front {
  readonly url: string
  /** Where requests go from now on. */
  leadTo(service: { readonly url: string }): void
}

/** Stands before a service, so that something can happen before a request arrives there or its answer leaves. */
export async function standBefore(
  t: TestContext,
  service: { readonly url: string },
  hooks: { readonly before?: Hook; readonly after?: Hook } = {},
): Promise<Front> {
  let target = service
  const { url } = await serve(t, async (incoming, outgoing) => {
    try {
      const body = Buffer.concat(await incoming.toArray())
      await hooks.before?.(incoming)
      const { method = 'GET', url = '/', headers } = incoming
      const sent = request(new URL(url, target.url), { method, headers, agent: false }).end(body)
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      const answer = Buffer.concat(await response.toArray())
      await hooks.after?.(incoming)
      outgoing.writeHead(response.statusCode ?? 500, response.headers).end(answer)
    } catch {
      // Whoever asked is gone.
      outgoing.destroy()
    }
  })
  return {
    url,
    leadTo(next) {
      target = next
    },
  }
}
