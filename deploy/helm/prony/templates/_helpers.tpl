{{- define "prony.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 36 | trimSuffix "-" }}
{{- else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 36 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- /* One run of the lab: a Job's pods cannot be changed, so that each revision has its own. */}}
{{- define "prony.run" -}}
{{ include "prony.name" . }}{{ if not .Values.schedule }}-{{ .Release.Revision }}{{ end }}
{{- end }}

{{- define "prony.labels" -}}
app.kubernetes.io/name: prony
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- /* Of a part: (list $ "lab"). */}}
{{- define "prony.part" -}}
{{ include "prony.labels" (index . 0) }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "prony.labSecret" -}}
{{ .Values.identity.labSecret | default (printf "%s-lab" (include "prony.name" .)) }}
{{- end }}
{{- define "prony.generatorSecret" -}}
{{ .Values.identity.generatorSecret | default (printf "%s-generator" (include "prony.name" .)) }}
{{- end }}
{{- define "prony.tokenSecret" -}}
{{ .Values.serve.tokenSecret | default (printf "%s-serve" (include "prony.name" .)) }}
{{- end }}

{{- define "prony.host" -}}
{{ regexReplaceAll ":[0-9]+$" (urlParse .Values.url).host "" }}
{{- end }}

{{- /* What all pods have: no token, no rights, a user of no name. */}}
{{- define "prony.pod" -}}
serviceAccountName: {{ include "prony.name" . }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "prony.container" -}}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- /* Where it runs: (list $ values-of-the-part). */}}
{{- define "prony.place" -}}
{{- with .nodeSelector }}
nodeSelector: {{ toJson . }}
{{- end }}
{{- with .tolerations }}
tolerations: {{ toJson . }}
{{- end }}
{{- with .affinity }}
affinity: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "prony.results" -}}
{{- if .Values.results.persistent }}
persistentVolumeClaim: {claimName: {{ .Values.results.claim | default (include "prony.name" .) }}}
{{- else }}
emptyDir: {sizeLimit: {{ .Values.results.size }}}
{{- end }}
{{- end }}

{{- /* What does not go together. */}}
{{- define "prony.check" -}}
{{- $v := .Values }}
{{- if and (eq $v.run "load") (not $v.url) }}{{ fail "url: say which service is loaded" }}{{ end }}
{{- if and (eq $v.run "suite") (not $v.suite.project) }}
{{- fail "suite.project: want the text of a prony.yaml" }}{{ end }}
{{- if and $v.generators (ne $v.run "load") }}
{{- fail "generators: they offer a load; run is another" }}{{ end }}
{{- if and $v.gate.enabled (ne $v.run "suite") }}
{{- fail "gate: it judges blocks, which a suite has; run is another" }}{{ end }}
{{- if and $v.gate.enabled (not $v.results.persistent) }}
{{- fail "gate: it needs the last good run: results.persistent" }}{{ end }}
{{- if and $v.serve.enabled (not $v.results.persistent) }}
{{- fail "serve: it shows results that are kept: results.persistent" }}{{ end }}
{{- if ne (empty $v.identity.labSecret) (empty $v.identity.generatorSecret) }}
{{- fail "identity: name both Secrets, or none" }}{{ end }}
{{- end }}
