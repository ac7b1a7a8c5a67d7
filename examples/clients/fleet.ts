// A cluster with a namespace of its own, by the client that openapi-typescript and openapi-fetch make.
import createClient from 'openapi-fetch'
import type { paths } from './fleet-api.d.ts'

const fleet = createClient<paths>({
  baseUrl: process.env.FLUX_API_URL ?? '',
  headers: { Authorization: `Bearer ${process.env.FLUX_API_WRITE_TOKEN}` },
})

/** What came back; a refusal says why in its message. */
function unwrap<T>({ data, error }: { data?: T; error?: { message: string } }): T {
  if (data === undefined) throw new Error(error?.message ?? 'the service gave no answer')
  return data
}

const clusters = unwrap(await fleet.GET('/clusters', { params: { query: { environment: 'dev' } } }))
console.log('clusters:', ...clusters.map(({ id }) => id))

const [id, dns] = ['lab-01', 'lab-01.k8s.example.com']
unwrap(
  await fleet.POST('/clusters', {
    body: { id, cluster_name: 'Lab 1', cluster_dns: dns, environment: 'dev' },
  }),
)

unwrap(await fleet.PATCH('/clusters/{id}', { params: { path: { id } }, body: { labels: { team: 'lab' } } }))

unwrap(
  await fleet.POST('/batch', {
    body: {
      operations: [
        { op: 'create', type: 'namespaces', document: { id: 'lab', labels: { team: 'lab' } } },
        { op: 'assign', type: 'namespaces', ref: { id: 'lab' }, selector: 'team=lab' },
      ],
    },
  }),
)

const cluster = unwrap(await fleet.GET('/clusters/{id}', { params: { path: { id } } }))
console.log('labels:', cluster.labels.team)
const poll = unwrap(await fleet.GET('/api/v2/flux/clusters/{dns}/namespaces', { params: { path: { dns } } }))
console.log('inputs:', ...poll.inputs.map((input) => input.id))
