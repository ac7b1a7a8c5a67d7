// The checks of a batch's shape, made from the schemas of the API.
import { BATCH_SCHEMA, OPERATIONS } from '../api/batch-schema.ts'
import type { BatchChecks } from '../domain/commands/parse-batch.ts'
import { buildChecker } from './validator.ts'

export const BATCH_CHECKS: BatchChecks = {
  envelope: buildChecker(BATCH_SCHEMA),
  operation: buildChecker({ type: 'object' }),
  operations: new Map(Object.entries(OPERATIONS).map(([op, schema]) => [op, buildChecker(schema)])),
}
