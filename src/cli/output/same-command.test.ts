import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandOf } from './same-command.ts'

const again = (argv: readonly string[], flags: string, without: readonly string[] = []): string =>
  commandOf({ again: flags, without, about: '' }, argv)

test('a command to type again is what was typed, quoted, with what is added', () => {
  assert.equal(
    again(['component', 'patch', 'podinfo', '--set', "ui.message=it's on"], '--amend r2'),
    `flux-resourceset-cli component patch podinfo --set 'ui.message=it'\\''s on' --amend r2`,
  )
})

test('secrets, plans and flags that do not go with it are left out with their values', () => {
  const argv = [
    ...['--api-token', 'secret', '--write-token=secret', 'batch', '-f', 'x.yaml', '--plan', 'sha256:0'],
    ...['--rollout', 'default', '--rollout-wave=rest', '--restart-waves', '--dry-run', '--yes'],
  ]
  assert.equal(
    again(argv, '--amend r2', ['--rollout', '--rollout-wave', '--restart-waves']),
    'flux-resourceset-cli batch -f x.yaml --yes --amend r2',
  )
})

test('a message that was given is not asked for again', () => {
  for (const message of [['-m', 'urgent'], ['--message=urgent']])
    assert.match(again(['batch', ...message], "--bypass -m 'why'"), /urgent --bypass$/)
  assert.match(again(['batch'], "--bypass -m 'why'"), /batch --bypass -m 'why'$/)
})
