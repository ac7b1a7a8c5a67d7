import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { waitFor } from './service.ts'
import { startProxy, type TcpProxy } from './tcp-proxy.ts'

interface Peer {
  readonly socket: Socket
  /** Everything that came so far. */
  text(): string
  /** How it ended, if it did: the code of the error or `end`. */
  end(): string | undefined
}

function watch(socket: Socket): Peer {
  let text = ''
  let end: string | undefined
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', (error: NodeJS.ErrnoException) => {
    end = error.code
  })
  socket.on('end', () => {
    end = 'end'
  })
  return { socket, text: () => text, end: () => end }
}

/** Answers everything with itself in capitals, after its own name. */
async function startEcho(t: TestContext, name = 'echo') {
  const peers: Peer[] = []
  const server = createServer((socket) => {
    peers.push(watch(socket))
    socket.on('data', (chunk) => socket.write(`${name}:${chunk.toString().toUpperCase()}`))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const { socket } of peers) socket.destroy()
    server.close()
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port, peers }
}

async function openProxy(t: TestContext) {
  const echo = await startEcho(t)
  const proxy = await startProxy(echo)
  t.after(() => proxy.close())
  return { echo, proxy }
}

function dial(t: TestContext, proxy: TcpProxy): Peer {
  const socket = connect({ host: '127.0.0.1', port: proxy.port })
  t.after(() => socket.destroy())
  return watch(socket)
}

/** A connection that has answered once, so that both sides of it are there. */
async function dialAndGreet(t: TestContext, proxy: TcpProxy): Promise<Peer> {
  const client = dial(t, proxy)
  client.socket.write('hi')
  await waitFor('the echo answers', () => client.text() === 'echo:HI')
  return client
}

test('a proxy passes bytes both ways, and the end of a connection', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  assert.equal(proxy.connections, 1)
  client.socket.end()
  await waitFor('both have ended', () => client.end() === 'end' && echo.peers[0]?.end() === 'end')
  await waitFor('the connection is gone', () => proxy.connections === 0)
})

test('what is larger than any buffer passes whole', async (t) => {
  const { proxy } = await openProxy(t)
  const client = dial(t, proxy)
  client.socket.write('x'.repeat(8 * 1024 * 1024))
  const count = () => client.text().replaceAll('echo:', '').length
  await waitFor('all of it is back', () => count() === 8 * 1024 * 1024)
})

test('a cut resets both sides and refuses new connections until it is healed', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.cut()
  await waitFor('both are reset', () => {
    return client.end() === 'ECONNRESET' && echo.peers[0]?.end() === 'ECONNRESET'
  })
  const refused = dial(t, proxy)
  await waitFor('it is refused', () => refused.end() === 'ECONNRESET')
  assert.equal(echo.peers.length, 1)
  proxy.heal()
  await dialAndGreet(t, proxy)
})

test('while it stalls, connections stay and nothing passes, not even their end; healed, everything arrives', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const old = await dialAndGreet(t, proxy)
  const ending = await dialAndGreet(t, proxy)
  proxy.stall()
  const fresh = dial(t, proxy)
  old.socket.write('old')
  fresh.socket.write('new')
  ending.socket.end()
  await waitFor('the new one is taken', () => proxy.connections === 3)
  await sleep(50)
  assert.deepEqual([old.text(), fresh.text(), echo.peers.length], ['echo:HI', '', 2])
  assert.deepEqual([old.end(), fresh.end(), echo.peers[1]?.end()], [undefined, undefined, undefined])
  proxy.heal()
  await waitFor('it arrives', () => old.text() === 'echo:HIecho:OLD' && fresh.text() === 'echo:NEW')
  await waitFor('the end arrives', () => echo.peers[1]?.end() === 'end')
})

test('a message is cut in the middle on its way up, and then the connection', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.halve()
  client.socket.write('abcdef')
  await waitFor('both are reset', () => {
    return client.end() === 'ECONNRESET' && echo.peers[0]?.end() === 'ECONNRESET'
  })
  assert.equal(echo.peers[0]?.text(), 'hiabc')
})

test('a message is cut in the middle on its way down, when only that is asked for', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.halve('down')
  client.socket.write('abcde')
  await waitFor('both are reset', () => {
    return client.end() === 'ECONNRESET' && echo.peers[0]?.end() === 'ECONNRESET'
  })
  assert.deepEqual([echo.peers[0]?.text(), client.text()], ['hiabcde', 'echo:HIecho:'])
})

test('what is dropped on its way up never arrives, and what comes later does', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.drop('up')
  client.socket.write('lost')
  await waitFor('the proxy has it', () => client.socket.bytesWritten === 6)
  await sleep(50)
  proxy.heal()
  client.socket.write('kept')
  await waitFor('the answer is there', () => client.text() === 'echo:HIecho:KEPT')
  assert.equal(echo.peers[0]?.text(), 'hikept')
})

test('what is dropped on its way down was heard', async (t) => {
  const { echo, proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.drop('down')
  client.socket.write('lost')
  await waitFor('it is heard', () => echo.peers[0]?.text() === 'hilost')
  await sleep(50)
  proxy.heal()
  client.socket.write('kept')
  await waitFor('the answer is there', () => client.text() === 'echo:HIecho:KEPT')
})

test('what is delayed takes its time in both directions', async (t) => {
  const { proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  proxy.delay(60)
  const from = performance.now()
  client.socket.write('late')
  await waitFor('the answer is there', () => client.text() === 'echo:HIecho:LATE')
  // Timers count whole milliseconds.
  assert.ok(performance.now() - from >= 118)
})

test('new connections lead to the new target, old ones stay where they are', async (t) => {
  const { proxy } = await openProxy(t)
  const client = await dialAndGreet(t, proxy)
  const { host, port } = await startEcho(t, 'other')
  proxy.target(host, port)
  const fresh = dial(t, proxy)
  fresh.socket.write('hi')
  client.socket.write('again')
  await waitFor('the other one answers', () => fresh.text() === 'other:HI')
  await waitFor('the old one answers', () => client.text() === 'echo:HIecho:AGAIN')
})

test('a target that does not listen resets the client', async (t) => {
  const proxy = await startProxy({ host: '127.0.0.1', port: 1 })
  t.after(() => proxy.close())
  const client = dial(t, proxy)
  await waitFor('it is reset', () => client.end() === 'ECONNRESET')
})
