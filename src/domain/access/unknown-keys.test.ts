import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { View } from '../documents/view.ts'
import type { ClusterType, Document } from '../types/resource-type.ts'
import type { Selector } from './selector.ts'
import { UnknownKeys } from './unknown-keys.ts'

const CLUSTER = { labels: 'labels', list: ['environment'] } as unknown as ClusterType

/** Only for definitions, which these selectors do not name. */
const NO_VIEW = {} as View

function keysOf(...labels: string[]): UnknownKeys {
  return new UnknownKeys(CLUSTER, {
    text: '',
    labels,
    definitions: [],
    matches: () => true,
  } satisfies Selector)
}

function cluster(labels: Record<string, string>): Document {
  return { id: 'x', labels }
}

test('a key that some cluster has is known, and others are told with near ones', () => {
  const keys = keysOf('region', 'regoin', 'environmnt', 'zzz')
  keys.see(cluster({ team: 'a' }))
  keys.see(cluster({ region: 'eu' }))
  assert.deepEqual(keys.warnings(NO_VIEW), [
    'no cluster has the label "regoin": did you mean "region"?',
    'no cluster has the label "environmnt": did you mean "environment"?',
    'no cluster has the label "zzz"',
  ])
})

test('labels are not looked at any more once every key was seen', () => {
  const keys = keysOf('region')
  keys.see(cluster({ region: 'eu' }))
  const watched = {
    id: 'y',
    get labels(): never {
      return assert.fail('was looked at')
    },
  }
  keys.see(watched as unknown as Document)
  assert.deepEqual(keys.warnings(NO_VIEW), [])
})

test('without clusters, and without labels in a selector, there is nothing to tell', () => {
  assert.deepEqual(keysOf('region').warnings(NO_VIEW), [])
  const none = keysOf()
  none.see(cluster({}))
  assert.deepEqual(none.warnings(NO_VIEW), [])
})
