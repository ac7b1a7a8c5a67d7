// The report of a cluster: all its marks in the query of a URL, which the Flux Operator polls.
import { parseDuration } from '../base/duration.ts'
import type { JsonObject } from '../base/json.ts'
import { ACK, ACK_LABEL, NAMESPACE } from './bundle-names.ts'
import type { BundleOptions } from './bundle-options.ts'
import { FLUX_API, pollingProvider, providerTemplate } from './input-provider.ts'

/** Proxies often refuse URLs of more than 8 kB. */
const LONGEST_URL = 7500

/** What every report begins with, as a mark that is always there: a cluster that has nothing reports, too. */
export function reportFloor(url: string, { interval }: BundleOptions): JsonObject {
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSetInputProvider',
    metadata: { name: ACK, namespace: NAMESPACE, labels: { [ACK_LABEL]: 'true' } },
    spec: { type: 'Static', defaultValues: { ack: `v=1&every=${parseDuration(interval)}`, url } },
  }
}

/** The ResourceSet that makes the report. */
export function reportSet(options: BundleOptions): JsonObject {
  const provider = { apiVersion: FLUX_API, kind: 'ResourceSetInputProvider' }
  return {
    apiVersion: FLUX_API,
    kind: 'ResourceSet',
    metadata: { name: ACK, namespace: NAMESPACE },
    spec: {
      // Each mark has one input, so there is one permutation, which has them all.
      inputStrategy: { name: 'Permute' },
      inputsFrom: [{ ...provider, selector: { matchLabels: { [ACK_LABEL]: 'true' } } }],
      dependsOn: [{ ...provider, name: ACK, namespace: NAMESPACE, ready: true }],
      resourcesTemplate: reportTemplate(options),
    },
  }
}

/**
 * One URL, as long as it is short enough. Otherwise one for each first digit of the hashes of component ids, or for the
 * first two: `part` says which components a URL is about, so that each tells by itself which of them are not ready.
 */
function reportTemplate(options: BundleOptions): string {
  const name = `<< printf "${ACK}-report-%s" $part | trimSuffix "-" | quote >>`
  return `<<- $answers := dict >>
<<- $ready := dict >>
<<- range inputs >>
<<- if kindIs "map" . >>
<<- with get . "ack" >>
<<- $_ := set $answers . "" >>
<<- end >>
<<- with get . "ready" >>
<<- $_ := set $ready . (splitList ":" . | first | sha256sum) >>
<<- end >>
<<- end >>
<<- end >>
<<- $start := printf "%s?%s" (get inputs "${ACK.replaceAll('-', '_')}").url (keys $answers | sortAlpha | join "&") >>
<<- $urls := dict >>
<<- $parts := list "" >>
<<- range $digits := until 3 >>
<<- if not $urls >>
<<- $groups := dict >>
<<- range $parts >>
<<- $_ := set $groups . dict >>
<<- end >>
<<- range $component, $hash := $ready >>
<<- $_ := set (get $groups (trunc $digits $hash)) $component "" >>
<<- end >>
<<- $longest := 0 >>
<<- range $part, $components := $groups >>
<<- $url := $start >>
<<- if $part >>
<<- $url = printf "%s&part=%s" $url $part >>
<<- end >>
<<- if $components >>
<<- $url = printf "%s&ready=%s" $url (keys $components | sortAlpha | join "&ready=") >>
<<- end >>
<<- $_ := set $urls $part $url >>
<<- $longest = max $longest (len $url) >>
<<- end >>
<<- if and (gt $longest ${LONGEST_URL}) (lt $digits 2) >>
<<- $urls = dict >>
<<- $longer := list >>
<<- range $part := $parts >>
<<- range splitList "" "0123456789abcdef" >>
<<- $longer = append $longer (printf "%s%s" $part .) >>
<<- end >>
<<- end >>
<<- $parts = $longer >>
<<- end >>
<<- end >>
<<- end >>
<<- range $part, $url := $urls >>
---
${providerTemplate(pollingProvider(name, '<< $url | quote >>', options), '$url')}<<- end >>
`
}
