// Rollouts while the processes that take their steps are killed at random, on SQLite and, two at a time, on PostgreSQL.
import { join } from 'node:path'
import { test } from 'node:test'
import { startPostgres } from '../postgres-server.ts'
import { temporaryFolder } from '../service.ts'
import { rolloutsUnderKills } from './rollouts-under-kills.ts'

const KILLS = Number(process.env.ROLLOUT_KILLS ?? 50)

test('rollouts come to their ends although their one process is killed again and again, without a wrong answer or step', (t) =>
  rolloutsUnderKills(t, {
    database: `sqlite://${join(temporaryFolder(t), 'fleet.db')}`,
    processes: 1,
    clusters: 24,
    kills: KILLS,
  }))

test('of two processes on PostgreSQL whichever takes the steps is killed again and again, and no limit is exceeded', async (t) => {
  const server = await startPostgres()
  t.after(() => server.stop())
  const database = await server.createDatabase()
  await rolloutsUnderKills(t, { database, processes: 2, clusters: 24, kills: KILLS })
})
