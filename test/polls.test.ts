import assert from 'node:assert/strict'
import { test } from 'node:test'

import { READ_TOKEN, startService } from './service.ts'

const COMPONENTS = '/api/v2/flux/clusters/one.k8s.example.com/platform-components'

test('a poll answers catalog defaults with the overrides and patches of the cluster, in the promised order', async () => {
  const service = await startService()
  const { status, text, headers } = await service.call('GET', COMPONENTS, { token: READ_TOKEN })
  assert.equal(status, 200)
  const cluster = '"cluster":{"name":"one","dns":"one.k8s.example.com","environment":"dev"}'
  assert.equal(
    text,
    '{"inputs":[' +
      `{"id":"a","component_path":"core/a/1.0.0","component_version":"1.0.0","cluster_env_enabled":false,"depends_on":[],"enabled":true,"patches":{"replicas":"2"},${cluster},"source":{"oci_url":"oci://registry.example.com/components","oci_tag":"v1.0.0"}},` +
      `{"id":"b","component_path":"core/b/1.0.0","component_version":"1.0.0","cluster_env_enabled":false,"depends_on":["a"],"enabled":true,"patches":{},${cluster},"source":{"oci_url":"oci://registry.example.com/components","oci_tag":"v2.0.0"}}]}`,
  )
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['content-length'], String(Buffer.byteLength(text)))
  assert.equal(headers['cache-control'], 'no-store')
})
