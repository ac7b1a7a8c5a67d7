{{- define "flux-resourceset.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
- name: tokens
  mountPath: /etc/flux-resourceset/tokens
  readOnly: true
{{- if .Values.tls.existingSecret }}
- name: tls
  mountPath: /etc/flux-resourceset/tls
  readOnly: true
{{- end }}
{{- if include "flux-resourceset.accessRules" . }}
- name: access
  mountPath: /etc/flux-resourceset/access
  readOnly: true
{{- end }}
{{- if eq .Values.store "postgres" }}
- name: database
  mountPath: /etc/flux-resourceset/database
  readOnly: true
- name: snapshots
  mountPath: /var/lib/flux-resourceset
{{- else if eq .Values.store "sqlite" }}
- name: fleet
  mountPath: /var/lib/flux-resourceset
{{- end }}
{{- if .Values.resourceTypes }}
- name: resource-types
  mountPath: /etc/flux-resourceset/resource-types
  readOnly: true
{{- end }}
{{- if .Values.templates }}
- name: templates
  mountPath: /etc/flux-resourceset/templates
  readOnly: true
{{- end }}
{{- end }}

{{/* Of every Secret, only what pods of the component need. */}}
{{- define "flux-resourceset.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .root.Values.tmpSize }}
- name: tokens
  secret:
    secretName: {{ include "flux-resourceset.tokenSecret" .root }}
    defaultMode: 0440
    items:
      - key: AUTH_TOKEN
        path: AUTH_TOKEN
      {{- if eq .component "crud" }}
      - key: CRUD_AUTH_TOKEN
        path: CRUD_AUTH_TOKEN
      {{- end }}
{{- with .root.Values.tls }}
{{- if .existingSecret }}
- name: tls
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ .existingSecret }}
          items:
            - key: tls.crt
              path: tls.crt
            - key: tls.key
              path: tls.key
      {{- if .clientCaSecret }}
      - secret:
          name: {{ .clientCaSecret }}
          items:
            - key: {{ .clientCaKey }}
              path: client-ca.crt
      {{- end }}
{{- end }}
{{- end }}
{{- with include "flux-resourceset.accessRules" .root }}
- name: access
  configMap:
    name: {{ . }}
    items:
      - key: access.yaml
        path: access.yaml
{{- end }}
{{- if eq .root.Values.store "postgres" }}
- name: database
  projected:
    defaultMode: 0440
    sources:
      - secret:
          name: {{ include "flux-resourceset.databaseSecret" . }}
          items:
            - key: {{ .root.Values.database.passwordKey }}
              path: password
      {{- with .root.Values.database.caSecret }}
      - secret:
          name: {{ . }}
          items:
            - key: {{ $.root.Values.database.caKey }}
              path: ca.crt
      {{- end }}
- name: snapshots
  emptyDir:
    sizeLimit: 1Gi
{{- else if eq .root.Values.store "sqlite" }}
- name: fleet
  persistentVolumeClaim:
    claimName: {{ include "flux-resourceset.claim" .root }}
{{- end }}
{{- if .root.Values.resourceTypes }}
- name: resource-types
  configMap:
    name: {{ include "flux-resourceset.fullname" .root }}-resource-types
{{- end }}
{{- if .root.Values.templates }}
- name: templates
  configMap:
    name: {{ include "flux-resourceset.fullname" .root }}-templates
{{- end }}
{{- end }}
