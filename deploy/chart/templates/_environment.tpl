{{/* The settings of pods of a component, by docs/configuration.md. */}}
{{- define "flux-resourceset.environment" -}}
{{- $crud := eq .component "crud" }}
{{- $values := .root.Values -}}
- name: API_MODE
  value: {{ .component }}
# Files are read again when the Secret changes.
- name: AUTH_TOKEN_FILE
  value: /etc/flux-resourceset/tokens/AUTH_TOKEN
{{- if $crud }}
- name: CRUD_AUTH_TOKEN_FILE
  value: /etc/flux-resourceset/tokens/CRUD_AUTH_TOKEN
{{- end }}
- name: LISTEN_ADDR
  value: {{ printf "%s:8080" .root.Values.listenHost | quote }}
- name: ADMIN_LISTEN_ADDR
  value: {{ printf "%s:%d" .root.Values.listenHost (int .root.Values.adminPort) | quote }}
{{- with .root.Values.tls }}
{{- if .existingSecret }}
- name: TLS_CERT_FILE
  value: /etc/flux-resourceset/tls/tls.crt
- name: TLS_KEY_FILE
  value: /etc/flux-resourceset/tls/tls.key
{{- if .clientCaSecret }}
- name: TLS_CLIENT_CA_FILE
  value: /etc/flux-resourceset/tls/client-ca.crt
- name: TLS_CLIENT_AUTH
  value: {{ .clientAuth | default "optional" }}
{{- end }}
- name: HTTP2
  value: {{ ternary "on" "off" .http2 | quote }}
{{- end }}
{{- end }}
{{- if include "flux-resourceset.accessRules" .root }}
- name: ACCESS_FILE
  value: /etc/flux-resourceset/access/access.yaml
{{- end }}
{{- /* People talk to the pods that write; the others need no way to the issuer. */}}
{{- if and $crud .root.Values.oidc.issuer }}
{{- range $name, $value := dict "OIDC_ISSUER" "issuer" "OIDC_AUDIENCE" "audience" "OIDC_CLIENT_ID" "clientId" "OIDC_ROLE_CLAIM" "roleClaim" "OIDC_USERNAME_CLAIM" "usernameClaim" }}
{{- with get $values.oidc $value }}
- name: {{ $name }}
  value: {{ . | quote }}
{{- end }}
{{- end }}
{{- end }}
- name: STORE_BACKEND
  value: {{ .root.Values.store }}
{{- if eq .root.Values.store "postgres" }}
- name: DATABASE_URL
  value: {{ include "flux-resourceset.databaseUrl" . | quote }}
- name: DATABASE_PASSWORD_FILE
  value: /etc/flux-resourceset/database/password
- name: DATABASE_POOL_SIZE
  value: {{ .root.Values.database.poolSize | toString | quote }}
# What a container that is restarted while the database is away starts from.
- name: SNAPSHOT_DIR
  value: /var/lib/flux-resourceset/snapshots
{{- with .root.Values.database.maxStaleness }}
- name: MAX_STALENESS
  value: {{ . }}
{{- end }}
{{- else if eq .root.Values.store "sqlite" }}
- name: DATABASE_URL
  value: sqlite:///var/lib/flux-resourceset/fleet.db
{{- end }}
- name: LOG_LEVEL
  value: {{ .root.Values.logLevel }}
- name: CONSOLE
  value: {{ ternary "on" "off" .root.Values.console | quote }}
- name: BRAKE_PERCENT
  value: {{ .root.Values.brakePercent | toString | quote }}
- name: BRAKE_GROUP_PERCENT
  value: {{ .root.Values.brakeGroupPercent | toString | quote }}
- name: STATUS_LATE_AFTER
  value: {{ .root.Values.status.lateAfter | toString | quote }}
- name: STATUS_OFFLINE_AFTER
  value: {{ .root.Values.status.offlineAfter | toString | quote }}
- name: STATUS_RETENTION
  value: {{ .root.Values.status.retention | quote }}
{{- with .root.Values.status.unobservedSelector }}
- name: UNOBSERVED_SELECTOR
  value: {{ . | quote }}
{{- end }}
- name: SHUTDOWN_DELAY_SECONDS
  value: {{ .delay | toString | quote }}
{{- with include "flux-resourceset.externalUrl" .root }}
- name: EXTERNAL_URL
  value: {{ . | quote }}
{{- end }}
{{- if and .root.Values.demo $crud }}
- name: SEED_FILE
  value: /app/data/seed.json
{{- end }}
{{- if .root.Values.resourceTypes }}
- name: RESOURCES_DIR
  value: /etc/flux-resourceset/resource-types
{{- end }}
{{- if .root.Values.templates }}
- name: TEMPLATES_DIR
  value: /etc/flux-resourceset/templates
{{- end }}
{{- end }}

{{/* The same, and extraEnv; of a name that is there twice, Kubernetes would take the last without a word. */}}
{{- define "flux-resourceset.wholeEnvironment" -}}
{{- $own := include "flux-resourceset.environment" . }}
{{- $names := list }}
{{- range fromYamlArray $own }}
{{- $names = append $names .name }}
{{- end }}
{{- range .root.Values.extraEnv }}
{{- if has .name $names }}
{{- fail (printf "extraEnv names %s, which the chart sets: there is a value for it" .name) }}
{{- end }}
{{- end }}
{{- $own }}
{{- with .root.Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end }}
