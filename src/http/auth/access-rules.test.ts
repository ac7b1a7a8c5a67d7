import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { Grant } from '../../domain/access/grant.ts'
import { loadTypes } from '../../registry/load-types.ts'
import { type AccessRules, grantOfClaims, grantOfNames, NO_RULES, readAccessRules } from './access-rules.ts'

const loaded = loadTypes([join(import.meta.dirname, '../../../resources')])
assert.ok(loaded.ok)
const { types } = loaded

function write(t: TestContext, content: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'flux-resourceset-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const path = join(folder, 'access.yaml')
  writeFileSync(path, content)
  return path
}

function rulesIn(t: TestContext, content: string): AccessRules {
  const read = readAccessRules(write(t, content), types)
  assert.ok(read.ok, JSON.stringify(read))
  return read.value
}

/** Without the variable and the path, which every problem starts with. */
function problemsIn(t: TestContext, content: string): string[] {
  const path = write(t, content)
  const read = readAccessRules(path, types)
  assert.ok(!read.ok, content)
  const start = `ACCESS_FILE ${path}: `
  assert.ok(
    read.problems.every((problem) => problem.startsWith(start)),
    read.problems.join('\n'),
  )
  return read.problems.map((problem) => problem.slice(start.length).trim())
}

function byName(names: string | readonly string[], ...certificates: AccessRules['certificates']) {
  return grantOfNames({ oidc: [], certificates }, [names].flat())?.grant
}

test('a file holds rules for people and for certificates, in its order', (t) => {
  const rules = rulesIn(
    t,
    `
oidc:
  - { claim: admins, role: admin }
  - { claim: team-a, role: editor, selector: "environment in (dev,qa)", types: [namespaces, rolebindings] }
certificates:
  - { name: "*.agents.example.com", role: cluster, cluster: "*" }
  - { name: spiffe://example.com/sa/one, role: cluster, cluster: one }
  - { name: audit.example.com, role: viewer }
`,
  )
  assert.deepEqual(rules, {
    oidc: [
      { claim: 'admins', role: 'admin' },
      {
        claim: 'team-a',
        role: 'editor',
        selector: 'environment in (dev,qa)',
        types: ['namespaces', 'rolebindings'],
      },
    ],
    certificates: [
      { name: '*.agents.example.com', role: 'cluster', cluster: '*' },
      { name: 'spiffe://example.com/sa/one', role: 'cluster', cluster: 'one' },
      { name: 'audit.example.com', role: 'viewer' },
    ],
  })
})

test('either list may be missing or empty, and JSON is YAML', (t) => {
  assert.deepEqual(rulesIn(t, '{}'), NO_RULES)
  assert.deepEqual(rulesIn(t, 'oidc: []'), NO_RULES)
  assert.deepEqual(rulesIn(t, '{"oidc":[{"claim":"a","role":"viewer"}]}').oidc.length, 1)
  assert.deepEqual(rulesIn(t, 'certificates:\n- {name: a, role: poller}\n').certificates.length, 1)
})

test('a file that is missing, empty, no YAML or no object is refused in one line', (t) => {
  const gone = readAccessRules('/nowhere/access.yaml', types)
  assert.ok(!gone.ok)
  assert.match(gone.problems.join('\n'), /^ACCESS_FILE \/nowhere\/access\.yaml: .*ENOENT.*$/)
  for (const content of ['', '# nothing yet', '[]', '- role: admin', 'text', '0', 'null'])
    assert.deepEqual(
      problemsIn(t, content),
      ['must hold the lists "oidc" and "certificates", or one of them'],
      content,
    )
  for (const content of [
    'oidc: [',
    'oidc: []\noidc: []',
    'certificates: [{name: *.example.com, role: viewer}]',
    '\toidc: []',
    'oidc: []\n---\noidc: []',
  ]) {
    const problems = problemsIn(t, content)
    assert.equal(problems.length, 1, content)
    assert.doesNotMatch(problems[0] ?? '', /\n/)
  }
})

test('every problem is told at once, with its place', (t) => {
  const problems = problemsIn(
    t,
    `
oidc:
  - { claim: a, role: king }
  - { role: viewer }
  - { claim: "", role: viewer, expires_at: never }
certificates:
  - { name: a }
  - { name: a, role: viewer, types: [] }
people: []
`,
  )
  for (const place of [
    /^\/oidc\/0\/role\b/,
    /^\/oidc\/1\b.*claim/,
    /^\/oidc\/2\/claim\b/,
    /^\/oidc\/2\b.*expires_at/,
    /^\/certificates\/0\b.*role/,
    /^\/certificates\/1\/types\b/,
    /people/,
  ])
    assert.ok(
      problems.some((problem) => place.test(problem)),
      `${place}\n${problems.join('\n')}`,
    )
})

test('what a role cannot have is refused, also in the last rule', (t) => {
  const problems = problemsIn(
    t,
    `
oidc:
  - { claim: a, role: cluster }
  - { claim: a, role: viewer, cluster: one }
  - { claim: a, role: admin, selector: environment=dev }
  - { claim: a, role: viewer, types: [namespaces] }
  - { claim: a, role: editor, selector: "environment in (" }
  - { claim: a, role: editor, types: [namespaces, gadgets, tokens] }
certificates:
  - { name: a, role: poller, selector: environment=dev }
`,
  )
  assert.deepEqual(
    problems.map((problem) => problem.split(' ')[0]),
    [
      '/oidc/0/cluster',
      '/oidc/1/cluster',
      '/oidc/2/selector',
      '/oidc/3/types',
      '/oidc/4/selector',
      '/oidc/5/types/1',
      '/oidc/5/types/2',
      '/certificates/0/selector',
    ],
  )
})

test('a cluster that is not there yet may be named, for the rules come before it', (t) => {
  const { certificates } = rulesIn(t, 'certificates: [{ name: a, role: cluster, cluster: to-come }]')
  assert.equal(certificates[0]?.cluster, 'to-come')
})

test('* in a cluster needs one in the name of a certificate', (t) => {
  for (const content of [
    'oidc: [{ claim: "*", role: cluster, cluster: "*" }]',
    'oidc: [{ claim: a, role: cluster, cluster: "edge-*" }]',
    'certificates: [{ name: a.example.com, role: cluster, cluster: "*" }]',
  ]) {
    const [problem = '', ...more] = problemsIn(t, content)
    assert.match(problem, /^\/(?:oidc|certificates)\/0\/cluster holds \*/)
    assert.deepEqual(more, [])
  }
})

test('people get the first rule of the file that names one of their claims, whatever the order of those', () => {
  const oidc = [
    { claim: 'admins', role: 'admin' },
    { claim: 'team-a', role: 'editor', selector: 'team=a' },
    { claim: 'everyone', role: 'viewer' },
    { claim: 'team-a', role: 'admin' },
  ] as const
  const roleOf = (...values: string[]) => grantOfClaims({ oidc, certificates: [] }, values)
  assert.deepEqual(roleOf('everyone', 'admins'), { role: 'admin' })
  assert.deepEqual(roleOf('everyone', 'team-a'), { role: 'editor', selector: 'team=a' })
  assert.deepEqual(roleOf('x', 'everyone'), { role: 'viewer' })
})

test('a claim is compared as it is: no case, no parts and no stars', () => {
  const oidc = [
    { claim: 'Admins', role: 'admin' },
    { claim: '*', role: 'viewer' },
  ] as const
  for (const values of [[], ['admins'], ['Admins '], ['Admin'], ['anybody'], ['']])
    assert.equal(grantOfClaims({ oidc, certificates: [] }, values), undefined, values.join())
})

test('a certificate gets the first rule of the file that fits one of its names', () => {
  const rules = [
    { name: 'ops.example.com', role: 'admin' },
    { name: '*.example.com', role: 'viewer' },
  ] as const
  assert.deepEqual(byName(['a.example.com', 'ops.example.com'], ...rules), { role: 'admin' })
  assert.deepEqual(byName(['a.example.com', 'x'], ...rules), { role: 'viewer' })
  assert.equal(byName(['a.example.org'], ...rules), undefined)
  assert.equal(byName([], ...rules), undefined)
})

test('* stands for one whole part of a name, or for what is missing in one', () => {
  const fits = (rule: string, name: string) => byName(name, { name: rule, role: 'viewer' }) !== undefined
  for (const [rule, name] of [
    ['*.example.com', 'a.example.com'],
    ['edge-*.example.com', 'edge-7.example.com'],
    ['*.*.example.com', 'a.b.example.com'],
    ['spiffe://example.com/ns/*/sa/flux', 'spiffe://example.com/ns/one/sa/flux'],
    ['spiffe://*/sa/flux', 'spiffe://trust/sa/flux'],
    ['*', 'agent'],
  ] as const)
    assert.ok(fits(rule, name), `${rule} ${name}`)
  for (const [rule, name] of [
    ['*.example.com', 'a.b.example.com'],
    ['*.example.com', '.example.com'],
    ['*.example.com', 'example.com'],
    ['*.example.com', 'a.example.com.evil.org'],
    ['*.example.com', 'evil/a.example.com'],
    ['*.example.com', 'aXexample.com'],
    ['edge-*.example.com', 'edge-.example.com'],
    ['spiffe://example.com/ns/*/sa/flux', 'spiffe://example.com/ns/a/b/sa/flux'],
    ['spiffe://example.com/ns/*/sa/flux', 'spiffe://example.com/ns//sa/flux'],
    ['*', 'a.example.com'],
    ['*', ''],
    ['a+b.example.com', 'aab.example.com'],
    ['(a|b).example.com', 'a.example.com'],
    ['[ab].example.com', 'a.example.com'],
    ['a.example.com', 'a.example.com\nb'],
    ['*.example.com', 'a.example.com\n'],
  ] as const)
    assert.ok(!fits(rule, name), `${rule} ${JSON.stringify(name)}`)
  assert.ok(fits('a+b(1).example.com', 'a+b(1).example.com'))
})

test('* in a cluster is what the first one in the name stands for, taken as it is', () => {
  const rule = (name: string, cluster: string) => ({ name, role: 'cluster', cluster }) as const
  const clusterOf = (name: string, given: ReturnType<typeof rule>) => byName(name, given)?.cluster
  assert.equal(clusterOf('one.agents.example.com', rule('*.agents.example.com', '*')), 'one')
  assert.equal(clusterOf('one.agents.example.com', rule('*.agents.example.com', 'edge-*-eu')), 'edge-one-eu')
  assert.equal(clusterOf('one.two.example.com', rule('*.*.example.com', '*')), 'one')
  assert.equal(clusterOf('spiffe://x/cluster/one', rule('spiffe://x/cluster/*', '*')), 'one')
  // In a replacement these would stand for something else.
  assert.equal(clusterOf('spiffe://x/cluster/$&', rule('spiffe://x/cluster/*', '*')), '$&')
  assert.equal(clusterOf('one.agents.example.com', rule('*.agents.example.com', 'two')), 'two')
  assert.equal(clusterOf('*.agents.example.com', rule('*.agents.example.com', '*')), '*')
})

test('a DNS name fits whatever its case and its last dot, and names the cluster that it names otherwise', () => {
  const rule = { name: '*.Agents.example.com', role: 'cluster', cluster: '*' } as const
  const expected: Grant = { role: 'cluster', cluster: 'one' }
  assert.deepEqual(byName('one.agents.example.com', rule), expected)
  assert.deepEqual(byName('ONE.AGENTS.example.com', rule), expected)
  assert.deepEqual(byName('one.agents.example.com.', rule), expected)
})

test('a URI fits in its own case only: two SPIFFE ids that differ in it are two workloads', () => {
  const rule = { name: 'spiffe://example.com/sa/audit', role: 'viewer' } as const
  assert.deepEqual(byName('spiffe://example.com/sa/audit', rule), { role: 'viewer' })
  assert.equal(byName('spiffe://example.com/sa/Audit', rule), undefined)
})
