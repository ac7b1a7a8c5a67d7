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
{{- printf "%s://%s" (ternary "https" "http" (ne .Values.ingress.tlsSecret "")) .Values.ingress.host }}
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

{{/* Combinations that would lose data, give clusters different answers, or never start. */}}
{{- define "flux-resourceset.validate" -}}
{{- $store := .Values.store }}
{{- if ne $store "postgres" }}
{{- $why := ternary "keeps the fleet in one file on one volume" "keeps a fleet of its own in each pod" (eq $store "sqlite") }}
{{- if gt (int (include "flux-resourceset.crudReplicas" .)) 1 }}
{{- fail (printf "crud.replicas is %s, but store %s %s: set crud.replicas to 1, or use store postgres" (include "flux-resourceset.crudReplicas" .) $store $why) }}
{{- end }}
{{- if gt (int (include "flux-resourceset.readOnlyReplicas" .)) 0 }}
{{- fail (printf "readOnly.replicas is %s, but store %s %s: leave readOnly.replicas out, as the one pod answers polls too, or use store postgres" (include "flux-resourceset.readOnlyReplicas" .) $store $why) }}
{{- end }}
{{- else }}
{{- with .Values.database }}
{{- if not .host }}
{{- fail "store postgres needs database.host: where the database takes writes" }}
{{- else if not .existingSecret }}
{{- fail (printf "store postgres needs database.existingSecret: the name of a Secret with the password under the key %s" .passwordKey) }}
{{- else if and .caSecret (eq .sslMode "disable") }}
{{- fail "database.sslMode is disable, but database.caSecret is given: choose verify-full, or leave out the authority" }}
{{- else if ne (empty .readOnly.user) (empty .readOnly.existingSecret) }}
{{- fail "database.readOnly needs both, user and existingSecret, or neither" }}
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.auth }}
{{- if and .existingSecret (or .readToken .writeToken) }}
{{- fail "auth.existingSecret and tokens are given: leave out auth.readToken and auth.writeToken" }}
{{- else if not (or .existingSecret (and .readToken .writeToken)) }}
{{- fail "tokens are needed: set auth.existingSecret to a Secret with the keys AUTH_TOKEN and CRUD_AUTH_TOKEN (best with GitOps), or set both auth.readToken and auth.writeToken" }}
{{- else if and .readToken (eq .readToken .writeToken) }}
{{- fail "auth.readToken and auth.writeToken are the same: every cluster could change the fleet; use two tokens" }}
{{- end }}
{{- /* Not in the schema, whose errors would show the token. */}}
{{- range $name := list "readToken" "writeToken" }}
{{- if not (regexMatch "^([!-~]{16,})?$" (get $.Values.auth $name)) }}
{{- fail (printf "auth.%s needs at least 16 printable ASCII characters without spaces, such as those of openssl rand -hex 32" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.enabled needs ingress.host: the name under which clusters reach the service" }}
{{- end }}
{{- end }}
