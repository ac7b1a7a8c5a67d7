{{- define "flux-resourceset.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* Leaves room for the longest suffix, -resource-types. */}}
{{- define "flux-resourceset.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 48 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 48 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 48 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.selectorLabels" -}}
app.kubernetes.io/name: {{ include "flux-resourceset.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "flux-resourceset.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "flux-resourceset.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "flux-resourceset.image" -}}
{{- $repository := required "image.repository is needed: build the image with the Dockerfile of the repository and push it to your registry" .Values.image.repository }}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "flux-resourceset.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name is needed when serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.tokenSecret" -}}
{{- .Values.auth.existingSecret | default (printf "%s-tokens" (include "flux-resourceset.fullname" .)) }}
{{- end }}

{{- define "flux-resourceset.claim" -}}
{{- .Values.persistence.existingClaim | default (include "flux-resourceset.fullname" .) }}
{{- end }}

{{- define "flux-resourceset.crudReplicas" -}}
{{- if kindIs "invalid" .Values.crud.replicas }}
{{- ternary 2 1 (eq .Values.store "postgres") }}
{{- else }}
{{- int .Values.crud.replicas }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.readOnlyReplicas" -}}
{{- if kindIs "invalid" .Values.readOnly.replicas }}
{{- ternary 2 0 (eq .Values.store "postgres") }}
{{- else }}
{{- int .Values.readOnly.replicas }}
{{- end }}
{{- end }}

{{/* The component of the pods that clusters poll. */}}
{{- define "flux-resourceset.polled" -}}
{{- ternary "read-only" "crud" (gt (int (include "flux-resourceset.readOnlyReplicas" .)) 0) }}
{{- end }}

{{- define "flux-resourceset.externalUrl" -}}
{{- if .Values.externalUrl }}
{{- .Values.externalUrl }}
{{- else if .Values.ingress.enabled }}
{{- /* An Ingress without a certificate of its own passes TLS through to a service that speaks it. */}}
{{- $tls := or .Values.ingress.tlsSecret .Values.tls.existingSecret }}
{{- printf "%s://%s" (ternary "http" "https" (empty $tls)) .Values.ingress.host }}
{{- end }}
{{- end }}

{{/* The database for pods of a component, without its password. */}}
{{- define "flux-resourceset.databaseUrl" -}}
{{- with .root.Values.database }}
{{- $user := ternary (.readOnly.user | default .user) .user (eq $.component "read-only") }}
{{- printf "postgres://%s@%s:%d/%s?sslmode=%s" $user .host (int .port) .name .sslMode }}
{{- if .caSecret }}&sslrootcert=/etc/flux-resourceset/database/ca.crt{{ end }}
{{- end }}
{{- end }}

{{/* Where its password is. */}}
{{- define "flux-resourceset.databaseSecret" -}}
{{- with .root.Values.database }}
{{- ternary (.readOnly.existingSecret | default .existingSecret) .existingSecret (eq $.component "read-only") }}
{{- end }}
{{- end }}

{{/* The names of the API's port, and its scheme; probes and metrics have a port without TLS. */}}
{{- define "flux-resourceset.scheme" -}}
{{- ternary "https" "http" (ne .Values.tls.existingSecret "") }}
{{- end }}

{{- define "flux-resourceset.servicePort" -}}
{{- if kindIs "invalid" .Values.service.port }}
{{- ternary 443 80 (ne .Values.tls.existingSecret "") }}
{{- else }}
{{- int .Values.service.port }}
{{- end }}
{{- end }}

{{/* The ConfigMap with the rules of ACCESS_FILE, if there are any. */}}
{{- define "flux-resourceset.accessRules" -}}
{{- if .Values.access.existingConfigMap }}
{{- .Values.access.existingConfigMap }}
{{- else if .Values.access.rules }}
{{- printf "%s-access" (include "flux-resourceset.fullname" .) }}
{{- end }}
{{- end }}

{{- define "flux-resourceset.podSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "flux-resourceset.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
