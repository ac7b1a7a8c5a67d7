import type { TestContext } from 'node:test'
import { temporaryPostgres } from '../../test/postgres-server.ts'
import { openPostgresStore } from './postgres.ts'
import { storeContract } from './store-contract.ts'

storeContract('PostgreSQL', async (t: TestContext) => {
  const store = openPostgresStore({ url: await temporaryPostgres(t), write: true })
  t.after(() => store.close())
  return store
})
