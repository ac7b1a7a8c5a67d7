// With a type of one's own, by the client that openapi-typescript and openapi-fetch make.
import createClient from 'openapi-fetch'
import type { paths } from './fleet-api.d.ts'

const fleet = createClient<paths>({
  baseUrl: process.env.FLUX_API_URL ?? '',
  headers: { Authorization: `Bearer ${process.env.FLUX_API_WRITE_TOKEN}` },
})
const created = await fleet.POST('/network_policies', { body: { id: 'web', target_namespace: 'web' } })
console.log(created.response.status)
const params = { path: { id: 'web' } }
const body = { ingress_rules: [{ from_namespace: 'traefik', port: 80 }] }
const patched = await fleet.PATCH('/network_policies/{id}', { params, body })
console.log(patched.response.status)
const assigned = await fleet.PUT('/clusters/{cluster}/network_policies/{id}', {
  params: { path: { cluster: 'demo-cluster-01', id: 'web' } },
})
console.log(assigned.response.status)
const dns = 'demo-cluster-01.k8s.example.com'
const poll = await fleet.GET('/api/v2/flux/clusters/{dns}/network-policies', { params: { path: { dns } } })
console.log(poll.data?.inputs[0]?.ingress_rules[0]?.from_namespace)
// @ts-expect-error rules are a list
await fleet.PATCH('/network_policies/{id}', { params, body: { ingress_rules: 'all' } })
// @ts-expect-error a namespace is needed
await fleet.POST('/network_policies', { body: { id: 'web' } })
