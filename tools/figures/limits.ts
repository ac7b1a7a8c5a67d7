// Limits of the service, each from the constant that holds it, as the table of docs/api.md.
import {
  BATCH_BODY_LIMIT,
  BODY_LIMIT,
  EVENT_BODY_LIMIT,
  MAX_MESSAGE,
  PAGES,
  PREVIEW_BODY_LIMIT,
  REVISION_PAGES,
} from '../../src/api/limits.ts'
import { MAX_DEPTH } from '../../src/base/json.ts'
import { MAX_OPERATIONS as MAX_PATCH } from '../../src/base/json-patch.ts'
import { MAX_SELECTOR } from '../../src/domain/access/selector.ts'
import { MAX_OPERATIONS as MAX_BATCH } from '../../src/domain/commands/parse-batch.ts'
import { MAX_ANSWER_BYTES, MAX_INPUTS } from '../../src/domain/guards/answer-limits.ts'
import { MAX_DOCUMENT_SIZE, MAX_INVENTORY_SIZE } from '../../src/registry/build-types.ts'
import type { Table } from './tables.ts'

const [KIB, MIB] = [1024, 1024 * 1024]

function sizeOf(bytes: number): string {
  return bytes % MIB === 0 ? `${bytes / MIB} MiB` : `${bytes / KIB} KiB`
}

function count(number: number): string {
  return number.toLocaleString('en')
}

export const LIMITS: Table = {
  head: ['what', 'at most'],
  rows: [
    ['inputs of one poll', `${count(MAX_INPUTS)}, and ${sizeOf(MAX_ANSWER_BYTES)} of JSON`],
    ['body of a request', sizeOf(BODY_LIMIT)],
    ['body of a batch', `${sizeOf(BATCH_BODY_LIMIT)}, and ${count(MAX_BATCH)} operations`],
    ['body from a caller who may not write', sizeOf(PREVIEW_BODY_LIMIT)],
    ['event of a cluster', sizeOf(EVENT_BODY_LIMIT)],
    ['document', `${sizeOf(MAX_DOCUMENT_SIZE)} of JSON, ${MAX_DEPTH} levels deep`],
    ['document of `applied_sets`', `${sizeOf(MAX_INVENTORY_SIZE)} of JSON`],
    [
      'JSON patch',
      `${count(MAX_PATCH)} operations, which add, copy and move ${sizeOf(3 * MAX_DOCUMENT_SIZE)}`,
    ],
    ['selector', `${count(MAX_SELECTOR)} characters`],
    ['message of a change', `${count(MAX_MESSAGE)} characters`],
    ['page of a list', `${count(PAGES.max)} items, ${count(PAGES.limit)} by default`],
    ['page of revisions', `${count(REVISION_PAGES.max)} items, ${count(REVISION_PAGES.limit)} by default`],
  ],
}
