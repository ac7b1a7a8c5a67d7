// The commands that the pages of the docs and the chart's notes give: what they name is there.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { onPostgres, required, secured, toTheFull } from './chart-values.ts'
import {
  CASES,
  CHART,
  configOf,
  deployed,
  NAMESPACE,
  ofKind,
  page,
  type Rendered,
  render,
  template,
  tlsPage,
} from './rendered-deployments.ts'
import { parseObjects } from './tools.ts'

/** Holds what a text says to forward to, to wait for and to read against what is rendered. */
function checkCommands(text: string, rendered: Rendered): number {
  const services = ofKind(rendered, 'Service')
  const forwards = [...text.matchAll(/port-forward service\/(\S+) \d+:(\d+)/g)]
  for (const [command, name, port] of forwards) {
    const service = services.find(({ metadata }) => metadata.name === name)
    assert.equal(service?.spec.ports[0].port, Number(port), command)
  }
  const deployments = ofKind(rendered, 'Deployment').map(({ metadata }) => metadata.name)
  for (const [command, name] of text.matchAll(/rollout status deployment\/([\w-]+)/g))
    assert.ok(deployments.includes(name), command)
  for (const [command, name] of text.matchAll(/get secret ([\w-]+)/g))
    assert.ok(JSON.stringify(deployed(rendered)).includes(`"${name}"`), command)
  const scheme = configOf(rendered, deployed(rendered)[0]?.spec.containers[0]).tls ? 'https' : 'http'
  for (const [, found, port] of text.matchAll(/(https?):\/\/(?:localhost|127\.0\.0\.1):(\d+)/g))
    assert.equal(found, port === '8081' ? 'http' : scheme)
  return forwards.length
}

async function renderedBy(yaml: Promise<string> | undefined): Promise<Rendered> {
  const text = (await yaml) ?? ''
  return { yaml: text, objects: parseObjects(text), secrets: [] }
}

test('the commands of the pages are for what the pages make', async (t) => {
  for (const [text, name, forwards] of [
    [page, 'the kustomization of docs/deploying.md', 1],
    [page, 'the chart with the values of docs/deploying.md', 1],
    [tlsPage, 'the kustomization of docs/tls-on-kubernetes.md', 2],
    [tlsPage, 'the chart with the values of docs/tls-on-kubernetes.md', 2],
  ] as const) {
    assert.equal(checkCommands(text, await renderedBy(CASES[name]?.yaml(t))), forwards, name)
  }
})

describe('the notes of the chart', () => {
  async function notesOf(values: object): Promise<string> {
    const args = ['install', NAMESPACE, CHART, '--namespace', NAMESPACE, '--dry-run=client', '--values', '-']
    const printed = await render('helm', args, { input: JSON.stringify(values) })
    return printed.slice(printed.indexOf('\nNOTES:'))
  }

  test('give commands for what is rendered', async () => {
    for (const values of [required, onPostgres, secured, toTheFull]) {
      const notes = await notesOf(values)
      assert.equal(checkCommands(notes, await renderedBy(template(values))), 1)
      assert.doesNotMatch(notes, /<no value>|%!/)
    }
  })

  test('say who is let in and out, and what to do where nobody knows', async () => {
    assert.match(
      await notesOf(required),
      /nobody reads metrics until you name them in networkPolicy\.adminFrom/,
    )
    assert.match(await notesOf(required), /It lets out: nothing\./)
    assert.match(await notesOf(secured), /DNS \(networkPolicy\.dns\), the database, the OIDC issuer\./)
    assert.match(
      await notesOf({ ...required, networkPolicy: { enabled: false } }),
      /There is no NetworkPolicy/,
    )
  })

  test('say that read-only pods could write to the database, until they have a user of their own', async () => {
    const warning = /Read-only pods have the password of the database's owner/
    assert.match(await notesOf(onPostgres), warning)
    assert.doesNotMatch(await notesOf(toTheFull), warning)
    assert.doesNotMatch(await notesOf({ ...onPostgres, readOnly: { replicas: 0 } }), warning)
  })

  test('say what an Ingress in front of TLS has to do', async () => {
    const ingress = { enabled: true, host: 'fleet.example.com' }
    const { clientCaSecret: _, clientAuth: _auth, ...plain } = secured.tls
    assert.match(await notesOf({ ...secured, ingress }), /keeps client certificates from the service/)
    assert.match(await notesOf({ ...secured, tls: plain, ingress }), /has to speak TLS to the service/)
  })
})
