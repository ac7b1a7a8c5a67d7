// The process that takes the steps of rollouts is killed: whoever comes after it goes on where it was. More of this, and on
// PostgreSQL, is in `make test-faults`.
import { join } from 'node:path'
import { test } from 'node:test'
import { rolloutsUnderKills } from './faults/rollouts-under-kills.ts'
import { temporaryFolder } from './service.ts'

test('a rollout goes on after its process was killed, and no answer and no step is wrong', (t) =>
  rolloutsUnderKills(t, {
    database: `sqlite://${join(temporaryFolder(t), 'fleet.db')}`,
    processes: 1,
    clusters: 6,
    kills: 1,
  }))
