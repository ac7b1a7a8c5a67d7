// Checks of waves by systems outside: they answer by themselves, or are asked, signed, until they do.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { JsonObject } from '../src/base/json.ts'
import { fleetOf } from './reporting-clusters.ts'
import { type RolledFleet, startRolled, tagOf } from './rolled-fleet.ts'

const FLEET = fleetOf({ one: {}, two: {} })
const CHANGE = [tagOf('a', 'v2.0.0')]
const KEY = 'a key of at least sixteen characters'

function wavesWith(check: JsonObject): JsonObject[] {
  return [
    { name: 'first', clusters: ['one'], gates: { checks: [check] } },
    { name: 'rest', rest: true },
  ]
}

/** The first wave has applied the change, and waits for its check. */
async function waiting(fleet: RolledFleet, check: JsonObject): Promise<string> {
  await fleet.settle('one', 'two')
  fleet.pass(10)
  const id = await fleet.start(CHANGE, wavesWith(check))
  await fleet.settle('one')
  await fleet.tick()
  return id
}

describe('a check that is answered', () => {
  test('with yes lets the wave pass', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await waiting(fleet, { name: 'smoke' })
    assert.equal((await fleet.rollout(id)).waiting_for, 'the answer of check smoke of wave first')
    const ci = await fleet.token('ci', { role: 'editor' })
    const answer = { wave: 'first', name: 'smoke', ok: true, remark: '42 of 42' }
    const { status, text } = await fleet.act(id, 'check', answer, { token: ci })
    assert.equal(status, 200, text)
    await fleet.tick()
    const shown = await fleet.rollout(id)
    assert.deepEqual([shown.waves[0].state, shown.waves[1].state], ['passed', 'open'])
    assert.deepEqual(
      shown.waves[0].gates.map(({ kind, name, holds }: JsonObject) => [kind, name, holds]),
      [
        ['applied_percent', undefined, true],
        ['failures', undefined, true],
        ['check', 'smoke', true],
      ],
    )
    assert.deepEqual([shown.checks[0].by, shown.checks[0].remark], ['ci', '42 of 42'])
  })

  test('with no pauses the rollout, and is asked for anew after a retry', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await waiting(fleet, { name: 'smoke' })
    await fleet.act(id, 'check', { wave: 'first', name: 'smoke', ok: false, remark: 'login is broken' })
    await fleet.tick()
    const paused = await fleet.rollout(id)
    assert.deepEqual(
      [paused.state, paused.waiting_for],
      ['paused', 'check smoke of wave first says no: login is broken'],
    )
    fleet.pass(10)
    await fleet.act(id, 'retry')
    await fleet.tick()
    assert.equal((await fleet.rollout(id)).waiting_for, 'the answer of check smoke of wave first')
    await fleet.act(id, 'check', { wave: 'first', name: 'smoke', ok: true })
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
  })

  test('about another plan, another wave, or what is not open counts for nothing', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await waiting(fleet, { name: 'smoke' })
    const { plan } = await fleet.rollout(id)
    await fleet.act(id, 'amend', { operations: [tagOf('a', 'v3.0.0')] })
    const late = await fleet.act(id, 'check', { wave: 'first', name: 'smoke', ok: true, plan })
    assert.deepEqual([late.status, late.body.reason], [409, 'plan_changed'], late.text)
    for (const [wave, name] of [
      ['none', 'smoke'],
      ['rest', 'smoke'],
      ['first', 'none'],
    ])
      assert.equal(
        (await fleet.act(id, 'check', { wave: wave ?? '', name: name ?? '', ok: true })).status,
        400,
      )
  })

  test('not at all within its time pauses the rollout', async (t) => {
    const fleet = await startRolled(t, FLEET)
    const id = await waiting(fleet, { name: 'smoke', timeout_s: 60 })
    fleet.pass(60)
    await fleet.tick()
    const paused = await fleet.rollout(id)
    assert.deepEqual(
      [paused.state, paused.waiting_for],
      ['paused', 'check smoke of wave first has not answered within 60 s'],
    )
  })
})

async function listen(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/checks`
}

describe('a check with a URL', () => {
  test('is asked there, signed, again after an error, until it answers', async (t) => {
    const asked: { signature: string | undefined; body: string }[] = []
    const url = await listen(t, async (request, response) => {
      const body = Buffer.concat(await request.toArray()).toString()
      asked.push({ signature: request.headers['x-signature']?.toString(), body })
      if (asked.length === 1) response.writeHead(503).end()
      else response.end(JSON.stringify({ ok: true, message: 'well' }))
    })
    const fleet = await startRolled(t, FLEET, { checks: { urls: [url], key: () => KEY } })
    t.after(() => fleet.controller.stop())
    const id = await waiting(fleet, { name: 'smoke', url: `${url}/smoke` })
    for (let i = 0; i < 100 && (await fleet.rollout(id)).checks.length === 0; i++) await sleep(50)
    await fleet.tick()
    assert.deepEqual(await fleet.waves(id), ['passed', 'open'])
    const { plan, checks } = await fleet.rollout(id)
    assert.deepEqual([checks[0].ok, checks[0].remark, checks[0].by], [true, 'well', `rollout/${id}`])
    assert.equal(asked.length, 2)
    for (const { signature, body } of asked) {
      assert.equal(signature, `sha256=${createHmac('sha256', KEY).update(body).digest('hex')}`)
      const { rollout, wave, check, plan: about } = JSON.parse(body)
      assert.deepEqual([rollout, wave, check, about], [id, 'first', 'smoke', plan])
    }
    assert.match(String(fleet.failures[0]), /check smoke .* has no answer yet: .* answered 503/)
  })

  test('is asked nowhere else than where that is allowed', async (t) => {
    const fleet = await startRolled(t, FLEET, {
      checks: { urls: ['https://ci.example.com/checks'], key: () => KEY },
    })
    for (const url of [
      'https://ci.example.com/other',
      'https://ci.example.com.evil.org/checks',
      'https://ci.example.com/checks/../admin',
    ]) {
      const { status, body } = await fleet.service.call('POST', '/batch', {
        body: { operations: CHANGE, rollout: { waves: wavesWith({ name: 'smoke', url }) } },
      })
      assert.deepEqual([status, body.details[0].path], [400, '/rollout/waves/0/gates/checks/0/url'], url)
    }
  })
})
