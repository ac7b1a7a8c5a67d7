// What the command line asks before it changes something, of whom, and what it does where nobody can be asked.
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { cli, onTerminal, type Run, type TerminalOptions } from './cli-process.ts'
import {
  builtInTypes,
  READ_TOKEN,
  smallFleet,
  startService,
  temporaryFolder,
  WRITE_TOKEN,
} from './service.ts'

const PARALLEL = { concurrency: 3 }
const types = builtInTypes()

interface Asked {
  readonly code: number | null
  /** Without colours and movements of the cursor. */
  readonly screen: string
  readonly raw: string
}

/** A fleet of its own, on a terminal. */
async function start(t: TestContext) {
  const service = await startService({ types, fleet: smallFleet() })
  t.after(() => service.stop())
  const { url } = service
  return {
    url,
    revision: (): number => service.engine.state.revision,
    status: async (path: string): Promise<number> => (await service.call('GET', path)).status,
    call: service.call,
    run: (line: string, env: Record<string, string> = {}): Promise<Run> => cli(line.split(' '), { url, env }),
    async ask(line: string, typed: string | undefined, options: TerminalOptions = {}): Promise<Asked> {
      const typing = typed === undefined ? [] : [['go on: ', `${typed}\r`] as const]
      const { code, screen } = await onTerminal(line.split(' '), { url, columns: 200, typing, ...options })
      return { code, screen: stripVTControlCharacters(screen), raw: screen }
    },
  }
}

describe('a cluster that goes', PARALLEL, () => {
  test('is deleted only when its id is typed, by somebody who knows what its Flux does then', async (t) => {
    const fleet = await start(t)
    for (const typed of ['yes', 'y', 'two', '']) {
      const no = await fleet.ask('cluster delete one', typed)
      assert.equal(no.code, 4, no.screen)
      assert.match(no.screen, /nothing was changed\n$/)
    }
    assert.equal(fleet.revision(), 1)
    const { code, screen } = await fleet.ask('cluster delete one', 'one')
    assert.equal(code, 0, screen)
    assert.match(screen, /^- clusters\/one\n1 cluster receives something else: dev 1 — 1 leaves the fleet\n/)
    assert.match(
      screen,
      /^Its Flux removes 1 namespace, 2 platform components, 1 role binding at the next poll\.$/m,
    )
    assert.match(screen, /^Way back: flux-resourceset-cli cluster restore one\.$/m)
    assert.match(screen, /Delete cluster one on http:\S+\?\sType "one" to go on: one\r\n/)
    assert.match(screen, /^clusters\/one deleted \(revision 2\)$/m)
  })

  test('for good says that there is no restore, and that its Flux keeps what it has', async (t) => {
    const fleet = await start(t)
    const { code, screen } = await fleet.ask('cluster delete one --purge', 'one')
    assert.equal(code, 0, screen)
    assert.match(screen, /^Polls of a purged cluster are refused, so its Flux keeps what it has\.$/m)
    assert.match(
      screen,
      /^Way back: none by restore; by flux-resourceset-cli revert, .* log reaches back\.$/m,
    )
    assert.match(screen, /Purge cluster one on http:\S+\?\sType "one"/)
    // And so it is.
    assert.equal((await fleet.run('cluster restore one')).code, 1)
    assert.equal((await fleet.run('revert 2')).code, 0)
    assert.equal(await fleet.status('/clusters/one'), 200)
  })

  test('is asked about when it is a tombstone that is forgotten, too', async (t) => {
    const fleet = await start(t)
    assert.equal((await fleet.run('cluster delete two --yes')).code, 0)
    const no = await fleet.ask('cluster delete two --purge', 'no')
    assert.match(no.screen, /Purge cluster two on http:\S+\?\sType "two"/)
    assert.deepEqual([no.code, fleet.revision()], [4, 2])
    assert.equal((await fleet.run('cluster delete two --purge')).code, 2)
  })

  test('with others is known by how many they are', async (t) => {
    const fleet = await start(t)
    const no = await fleet.ask('cluster delete one two', 'yes')
    assert.deepEqual([no.code, fleet.revision()], [4, 1])
    const { code, screen } = await fleet.ask('cluster delete one two', '2')
    assert.match(screen, /^The Flux of each removes 1 namespace, 2 platform components, 1 role binding at/m)
    assert.match(screen, /^Way back: .* restore ID, or all of them by flux-resourceset-cli revert, /m)
    assert.match(screen, /Delete 2 clusters on http:\S+\?\sType "2" to go on: /)
    assert.deepEqual([code, fleet.revision()], [0, 2])
  })

  test('on any other way is asked about as well', async (t) => {
    const fleet = await start(t)
    const batch = join(temporaryFolder(t), 'batch.json')
    writeFileSync(batch, '[{"op":"delete","type":"clusters","id":"two"}]')
    const third = { id: 'three', cluster_name: 'three', cluster_dns: 'three.example.com', environment: 'qa' }
    assert.equal((await fleet.call('POST', '/clusters', { body: third })).status, 201)
    const asks: readonly (readonly [line: string, question: RegExp])[] = [
      [`batch -f ${batch}`, /Delete cluster two on http:\S+\?\sType "two"/],
      ['revert 2', /Purge cluster three on http:\S+\?\sType "three"/],
      ['rollback --to 1', /Purge cluster three on http:\S+\?\sType "three"/],
    ]
    for (const [line, question] of asks) {
      const no = await fleet.ask(line, 'yes')
      assert.match(no.screen, question)
      assert.equal(no.code, 4)
      assert.equal((await fleet.run(line)).code, 2)
    }
    assert.equal(fleet.revision(), 2)
  })
})

describe('what one cluster loses', PARALLEL, () => {
  test('is shown and asked about', async (t) => {
    const fleet = await start(t)
    const no = await fleet.ask('component unassign b --cluster one', 'no')
    assert.deepEqual([no.code, fleet.revision()], [4, 1])
    assert.match(no.screen, /^~ clusters\/one\n {4}\/platform_components:\n {6}- \{"id":"b",/)
    assert.match(no.screen, /^1 cluster receives something else: dev 1 — 1 loses b$/m)
    assert.match(
      no.screen,
      /^Flux removes there what is taken away, .*Way back: flux-resourceset-cli revert/m,
    )
    assert.match(no.screen, /Remove b from one on http:\S+\?\sType "yes" to go on: no\r\n/)
    const yes = await fleet.ask('component unassign b --cluster one', 'yes')
    assert.deepEqual([yes.code, fleet.revision()], [0, 2])
  })

  test('may be switched off, or go with its definition', async (t) => {
    const fleet = await start(t)
    const off = await fleet.ask('component assign b --cluster one --enabled false', 'no')
    assert.match(off.screen, /— b is switched off on 1\n/)
    assert.match(off.screen, /Switch off b on 1 cluster on http:\S+\?\sType "yes"/)
    const cascade = await fleet.ask('component delete b --cascade', 'no')
    assert.match(cascade.screen, /Remove b from one on http:\S+\?\sType "yes"/)
    assert.deepEqual([off.code, cascade.code, fleet.revision()], [4, 4, 1])
  })

  test('takes the word "removals" when it is the last of a type, which is then confirmed', async (t) => {
    const fleet = await start(t)
    const line = 'namespace delete team-a --cascade'
    const yes = await fleet.ask(line, 'yes')
    assert.match(yes.screen, /^Warning: needs --confirm removals: it empties one \(namespaces\)/m)
    assert.match(yes.screen, /Remove team-a from one on http:\S+\?\sType "removals" to go on: yes/)
    assert.deepEqual([yes.code, fleet.revision()], [4, 1])
    const done = await fleet.ask(line, 'removals')
    assert.deepEqual([done.code, fleet.revision()], [0, 2])
  })
})

describe('a question', PARALLEL, () => {
  const many = 'component assign a --selector id --oci-tag v9'
  const change = /Change 2 clusters on http:\S+\?\sType "yes" to go on: /

  test('tells new installs from changes', async (t) => {
    const fleet = await start(t)
    const { screen } = await fleet.ask(many, 'no')
    assert.match(
      screen,
      /^2 clusters receive something else: dev 1, prod 1 — 1 gets a \(new\), 1 another oci_tag$/m,
    )
    assert.match(screen, change)
    assert.equal(fleet.revision(), 1)
  })

  test('that nobody can answer is told with what to know and what to add, and nothing is changed', async (t) => {
    const fleet = await start(t)
    const { code, stdout, stderr } = await fleet.run('cluster delete one')
    assert.deepEqual([code, stdout, fleet.revision()], [2, '', 1])
    assert.equal(
      stderr,
      `Error: this would delete cluster one, and there is no terminal to ask on: nothing was changed
  1 cluster receives something else: dev 1 — 1 leaves the fleet
  Its Flux removes 1 namespace, 2 platform components, 1 role binding at the next poll.
  Way back: flux-resourceset-cli cluster restore one.
Hint: look at it with --dry-run; then add --yes, or --plan with the plan that it prints
`,
    )
  })

  test('comes with what it is about once more where that has left the screen', async (t) => {
    const fleet = await start(t)
    const ids = Array.from({ length: 9 }, (_, i) => `n${i}`)
    const create = ids.map((id) => ({ op: 'create', type: 'namespaces', document: { id } }))
    const assign = ids.map((id) => ({ op: 'assign', type: 'namespaces', ref: { id }, selector: 'id' }))
    const { body } = await fleet.call('POST', '/batch', { body: { operations: [...create, ...assign] } })
    const { screen } = await fleet.ask(`revert ${body.revision}`, 'no')
    const line = /^2 clusters receive something else: dev 1, prod 1 — 2 lose n0, .* and 5 more differences$/gm
    assert.equal(screen.match(line)?.length, 2, screen)
    const short = await fleet.ask(many, 'no')
    assert.equal(short.screen.match(/^2 clusters receive something else/gm)?.length, 1)
  })

  test('is asked on a dumb terminal, without colours, bars or movements of the cursor', async (t) => {
    const fleet = await start(t)
    for (const [typed, code] of [
      ['no', 4],
      ['\u0003', 130],
      ['yes', 0],
    ] as const) {
      const { raw, screen, code: ended } = await fleet.ask(many, typed, { env: { TERM: 'dumb' } })
      assert.match(screen, change)
      assert.equal(raw, screen, 'no escape sequences')
      assert.equal(ended, code, screen)
      if (code !== 0) assert.match(screen, /Error: nothing was changed\n$/)
    }
    assert.equal(fleet.revision(), 2)
  })

  test('is asked with its preview on the terminal when stderr goes to a file', async (t) => {
    const fleet = await start(t)
    const log = join(temporaryFolder(t), 'err.log')
    const line = (command: string): string => `${command} 2>${log}`
    const no = await fleet.ask(many, 'no', { line })
    assert.match(no.screen, /^~ clusters\/one\n[\s\S]*Plan: sha256:/)
    assert.match(no.screen, change)
    assert.deepEqual([no.code, fleet.revision()], [4, 1])
    assert.equal(readFileSync(log, 'utf8'), 'Error: nothing was changed\n')
    const yes = await fleet.ask(many, 'yes', { line })
    assert.deepEqual([yes.code, fleet.revision()], [0, 2])
  })

  test('is asked on the terminal when the change comes by a pipe', async (t) => {
    const fleet = await start(t)
    const operations = '[{"op":"patch","type":"clusters","selector":"id","patch":{"labels":{"a":"b"}}}]'
    const line = (command: string): string => `printf %s '${operations}' | ${command}`
    const no = await fleet.ask('batch -f -', 'no', { line })
    assert.match(no.screen, change)
    assert.deepEqual([no.code, fleet.revision()], [4, 1])
    const cancelled = await fleet.ask('batch -f -', '\u0003', { line })
    assert.deepEqual([cancelled.code, fleet.revision()], [130, 1])
    const yes = await fleet.ask('batch -f -', 'yes', { line })
    assert.deepEqual([yes.code, fleet.revision()], [0, 2])
  })

  test('is not asked where somebody said never, by the environment or the context', async (t) => {
    const fleet = await start(t)
    const config = { XDG_CONFIG_HOME: temporaryFolder(t) }
    const never = { ...config, FLUX_API_ASK: 'never' }
    const silent = await fleet.ask('cluster delete one', undefined, { env: never })
    assert.equal(silent.code, 0)
    assert.equal(
      silent.screen,
      'clusters/one deleted (revision 2)\n1 cluster receives something else: dev 1 — 1 leaves the fleet\n',
    )

    const tokens = `--api-token ${READ_TOKEN} --write-token ${WRITE_TOKEN}`
    const set = `config set-context ci --api-url ${fleet.url} ${tokens}`
    const remove = '--context ci cluster delete two'
    assert.equal((await fleet.run(`${set} --ask sometimes`, config)).code, 2)
    assert.equal((await fleet.run(set, config)).code, 0)
    assert.equal((await fleet.run(remove, config)).code, 2)
    assert.equal((await fleet.run('config set-context ci --ask never', config)).code, 0)
    assert.match((await fleet.run('config view', config)).stdout, /"ask": "never"/)
    // The environment goes before the context.
    assert.equal((await fleet.run(remove, { ...config, FLUX_API_ASK: 'always' })).code, 2)
    assert.equal((await fleet.run(remove, config)).code, 0)
    // Another server under the same name has to be asked about again.
    const moved = await fleet.run('config set-context ci --api-url http://127.0.0.1:9', config)
    assert.equal(moved.code, 0)
    assert.doesNotMatch((await fleet.run('config view', config)).stdout, /"ask"/)
  })
})

describe('a preview', PARALLEL, () => {
  const LONG = 'x'.repeat(300)
  const patch = (end: string): string => `component patch a --cluster one --set big=${LONG}${end}`

  test('never cuts values in a pipe or in a wide one, and on a terminal around what differs', async (t) => {
    const fleet = await start(t)
    assert.equal((await fleet.run(patch('A'))).code, 0)
    const line = `${patch('B')} --dry-run`
    const whole = `/patches/a/big: "${LONG}A" → "${LONG}B"\n`
    assert.ok((await fleet.run(line)).stdout.includes(whole))
    assert.ok((await fleet.ask(`${line} -o wide`, undefined)).screen.includes(whole))
    const { screen } = await fleet.ask(line, undefined)
    assert.match(screen, /^ {4}\/patches\/a\/big: …x{30}A" → …x{30}B"$/m)
    // What log tells of it later, and where a value is from, are not cut either.
    assert.equal((await fleet.run(patch('B'))).code, 0)
    assert.ok((await fleet.run('show 3')).stdout.includes(whole))
    const annotations = { text: LONG }
    assert.equal((await fleet.call('PATCH', '/namespaces/team-a', { body: { annotations } })).status, 200)
    const { stdout } = await fleet.run('cluster inputs one namespaces --explain')
    assert.ok(stdout.includes(LONG), stdout)
  })

  test('names the field of a reference that changes, and shows those that come and go', async (t) => {
    const fleet = await start(t)
    const tag = await fleet.run('component assign b --cluster one --oci-tag v3 --dry-run')
    assert.match(
      tag.stdout,
      /^~ clusters\/one\n {4}\/platform_components\[b\]\/oci_tag: "v2\.0\.0" → "v3"\n1 cluster/,
    )
    const lists = await fleet.run(
      'cluster update one --dry-run --set platform_components=[{"id":"c"},{"id":"a","oci_tag":"v5"}]',
    )
    assert.match(
      lists.stdout,
      /^~ clusters\/one\n {4}\/platform_components:\n {6}- \{"id":"b".*\n {6}\+ \{"id":"c".*\n {4}\/platform_components\[a\]\/oci_tag: \(none\) → "v5"\n/,
    )
  })
})
