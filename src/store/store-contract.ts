// The promises of a store, which every store keeps: one suite per interface.
import { describe } from 'node:test'
import type { OpenStore } from './fixtures-for-contract.ts'
import { idempotencyContract } from './idempotency-contract.ts'
import { leasesContract } from './leases-contract.ts'
import { logContract } from './log-contract.ts'
import { logMaintenanceContract } from './log-maintenance-contract.ts'
import { logReaderContract } from './log-reader-contract.ts'
import { notesContract } from './notes-contract.ts'

export function storeContract(name: string, open: OpenStore): void {
  describe(`the ${name} store`, () => {
    logContract(open)
    logReaderContract(open)
    logMaintenanceContract(open)
    describe('notes', () => notesContract(open))
    describe('idempotency records', () => idempotencyContract(open))
    describe('leases', () => leasesContract(open))
  })
}
