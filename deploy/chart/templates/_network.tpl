{{- define "flux-resourceset.dnsRule" -}}
- ports:
    - port: {{ .Values.networkPolicy.dns.port }}
      protocol: UDP
    - port: {{ .Values.networkPolicy.dns.port }}
      protocol: TCP
  {{- with .Values.networkPolicy.dns.to }}
  to:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{/* Where a host is: as the values say, or as its name does. */}}
{{- define "flux-resourceset.peers" -}}
{{- if .policy.to }}
{{- toYaml .policy.to }}
{{- else if regexMatch "^[0-9]+([.][0-9]+){3}$" .host -}}
- ipBlock:
    cidr: {{ .host }}/32
{{- else if contains ":" .host -}}
- ipBlock:
    cidr: {{ .host }}/128
{{- else if regexMatch "^[^.]+$" .host -}}
- podSelector: {}
{{- else if regexMatch "^[^.]+[.][^.]+[.]svc([.]|$)" .host -}}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ splitList "." .host | rest | first }}
{{- else }}
{{- fail (printf "%s is outside the cluster: set networkPolicy.%s.to to its addresses, such as [{ipBlock: {cidr: 203.0.113.0/24}}], or networkPolicy.enabled to false" .host .value) }}
{{- end }}
{{- end }}
