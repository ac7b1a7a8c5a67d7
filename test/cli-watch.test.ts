// `watch` on the command line when something gets in its way: connections that break, servers that go, tokens that end.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { type TestContext, test } from 'node:test'
import { openMemoryStore } from '../src/store/memory.ts'
import { assertFailed, CLI, cli, cliEnv } from './cli-process.ts'
import { run, start } from './every-store.ts'
import { type TestService, waitFor } from './service.ts'

interface Line {
  readonly url: string
  /** Breaks every connection; how many there were. */
  cut(): number
  /** Where connections go from now on, or that there is nobody. */
  leadTo(service: TestService | undefined): void
}

/** Connections to a service that can be cut. */
async function startLine(t: TestContext, service: TestService): Promise<Line> {
  let target: TestService | undefined = service
  const sockets = new Set<Socket>()
  const server = createServer((near) => {
    if (!target) return near.destroy()
    const far = connect(Number(new URL(target.url).port), '127.0.0.1')
    sockets.add(near)
    near
      .on('error', () => {})
      .once('close', () => {
        sockets.delete(near)
        far.destroy()
      })
    far.on('error', () => {}).once('close', () => near.destroy())
    near.pipe(far).pipe(near)
  })
  const cut = (): number => {
    const count = sockets.size
    for (const socket of sockets) socket.destroy()
    return count
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.close()
    cut()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    leadTo(next) {
      target = next
    },
  }
}

interface Watch {
  readonly child: ChildProcess
  readonly closed: Promise<unknown[]>
  stdout(): string
  stderr(): string
}

function startWatch(t: TestContext, url: string, args: readonly string[], token?: string): Watch {
  const env = cliEnv({ url, env: token === undefined ? {} : { FLUX_API_TOKEN: token } })
  const child = spawn(process.execPath, [CLI, 'watch', ...args], { env })
  t.after(() => child.kill('SIGKILL'))
  const output = { stdout: '', stderr: '' }
  child.stdout.on('data', (chunk) => {
    output.stdout += chunk
  })
  child.stderr.on('data', (chunk) => {
    output.stderr += chunk
  })
  const closed = once(child, 'close')
  return { child, closed, stdout: () => output.stdout, stderr: () => output.stderr }
}

function edit(service: TestService): Promise<number> {
  return run(service, ['PATCH', '/namespaces/team-b', { annotations: { value: `${Math.random()}` } }])
}

function names(first: number, last: number): string {
  return Array.from({ length: last - first + 1 }, (_, i) => `revisions/${first + i}\n`).join('')
}

test('a stream that is cut goes on where it was, with nothing lost and nothing twice', async (t) => {
  const service = await start(t)
  const line = await startLine(t, service)
  const watch = startWatch(t, line.url, ['-o', 'name', '--count', '12'])
  await waitFor('it watches', () => watch.stderr().includes('after revision 1'))
  for (let round = 0; round < 3; round++) {
    const last = await edit(service)
    await waitFor('it is seen', () => watch.stdout().includes(`revisions/${last}\n`))
    assert.equal(line.cut(), 1)
    // While nobody looks.
    for (let i = 0; i < 3; i++) await edit(service)
  }
  assert.deepEqual(await watch.closed, [0, null])
  assert.equal(watch.stdout(), names(2, 13))
  assert.match(watch.stderr(), /^the stream was cut after revision 2: coming back$/m)
})

test('a server that is away for a while is waited for', async (t) => {
  const store = openMemoryStore()
  const service = await start(t, { store })
  const line = await startLine(t, service)
  const watch = startWatch(t, line.url, ['-o', 'name', '--count', '2', '--since', '1'])
  await edit(service)
  await waitFor('it is seen', () => watch.stdout() === 'revisions/2\n')
  line.leadTo(undefined)
  line.cut()
  await waitFor('it has tried in vain', () => watch.stderr().includes('cannot reach'))
  await edit(service)
  line.leadTo(service)
  assert.deepEqual(await watch.closed, [0, null])
  assert.equal(watch.stdout(), names(2, 3))
})

test('with a token that is revoked it ends, and says why', async (t) => {
  const service = await start(t)
  const { body } = await service.call('POST', '/tokens', { body: { name: 'short', role: 'viewer' } })
  const watch = startWatch(t, service.url, ['-o', 'name'], body.secret)
  await waitFor('it watches', () => watch.stderr().includes('after revision 2'))
  await run(service, ['DELETE', '/tokens/short'])
  const [code] = await watch.closed
  assert.equal(code, 1)
  assert.equal(watch.stdout(), '')
  assert.match(watch.stderr(), /^Error: the token of FLUX_API_TOKEN was refused/m)
})

test('history that was given up meanwhile is told of', async (t) => {
  const store = openMemoryStore()
  const service = await start(t, { store })
  const line = await startLine(t, service)
  const watch = startWatch(t, line.url, ['--quiet', '-o', 'name', '--since', '0'])
  await waitFor('it is seen', () => watch.stdout() === 'revisions/1\n')
  line.leadTo(undefined)
  line.cut()
  for (let i = 0; i < 5; i++) await edit(service)
  await store.prune({ revision: 4, time: new Date().toISOString(), hash: '', state: '' })
  line.leadTo(service)
  const [code] = await watch.closed
  assert.equal(code, 1)
  assert.equal(watch.stdout(), 'revisions/1\n')
  assert.match(watch.stderr(), /^Error: .*revision 1, and history is kept from revision 4/)
})

test('what cannot begin fails at once', async (t) => {
  const service = await start(t)
  const line = await startLine(t, service)
  assertFailed(await cli(['watch', '--since', '99'], { url: line.url }), 1, 'revision 99', 'the newest is 1')
  line.leadTo(undefined)
  assertFailed(await cli(['watch'], { url: line.url }), 3, 'cannot reach')
})
