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
{{- with .Values.tls }}
{{- if and (not .existingSecret) (or .clientCaSecret .clientAuth .http2) }}
{{- fail "tls.clientCaSecret, tls.clientAuth and tls.http2 need tls.existingSecret: a Secret with tls.crt and tls.key" }}
{{- else if and (has .clientAuth (list "optional" "required")) (not .clientCaSecret) }}
{{- fail (printf "tls.clientAuth %s needs tls.clientCaSecret: whose certificates count" .clientAuth) }}
{{- end }}
{{- end }}
{{- with .Values.access }}
{{- if and .existingConfigMap .rules }}
{{- fail "access.existingConfigMap and access.rules are given: leave out one of them" }}
{{- end }}
{{- end }}
{{- with .Values.oidc }}
{{- if not .issuer }}
{{- if or .audience .clientId .roleClaim .usernameClaim }}
{{- fail "oidc needs oidc.issuer: whose tokens count" }}
{{- end }}
{{- else if not .audience }}
{{- fail "oidc.issuer needs oidc.audience: the \"aud\" that tokens for this service have" }}
{{- else if not (include "flux-resourceset.accessRules" $) }}
{{- fail "oidc.issuer needs access.rules, or access.existingConfigMap: the rules that give people their roles" }}
{{- end }}
{{- end }}
{{- if and .Values.networkPolicy.enabled .Values.serviceMonitor.enabled (not .Values.networkPolicy.adminFrom) }}
{{- fail "serviceMonitor.enabled needs networkPolicy.adminFrom: who reads metrics, such as [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]; or set networkPolicy.enabled to false" }}
{{- end }}
{{- if eq (int .Values.adminPort) 8080 }}
{{- fail "adminPort is 8080, where the API listens: choose another" }}
{{- end }}
{{- end }}
