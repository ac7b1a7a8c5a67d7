// The way to the cluster's own Flux UI, where a label names its host: workloads and logs are looked at there.
import { useQuery } from '@tanstack/react-query'
import { isObject } from '../../../src/base/json.ts'
import { queries } from '../../api/queries.ts'

/** Label values hold no URL, so it is a host name; the UI is expected at https://. */
const LABEL = 'flux-ui'
const HOST = /^(?=.{1,253}$)[a-z\d](?:[a-z\d-]*[a-z\d])?(?:\.[a-z\d](?:[a-z\d-]*[a-z\d])?)+$/i

export function FluxUiLink({ type, cluster }: { readonly type: string; readonly cluster: string }) {
  const settings = useQuery(queries.settings())
  const document = useQuery(queries.document(type, cluster))
  const field = settings.data?.types.find((each) => each.cluster)?.cluster?.labels
  const labels = field === undefined ? undefined : document.data?.body[field]
  const host = isObject(labels) ? labels[LABEL] : undefined
  if (typeof host !== 'string' || !HOST.test(host)) return null
  return (
    <a href={`https://${host}/`} target="_blank" rel="noreferrer noopener">
      Flux UI
    </a>
  )
}
