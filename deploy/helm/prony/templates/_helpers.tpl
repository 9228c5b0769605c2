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

{{- /* The longest life of a pod, in seconds. Afterwards the pod and its log stay, which they do not if
the deadline of its job ends it. */}}
{{- define "prony.deadline" -}}
{{- $all := 3600.0 }}
{{- if .Values.deadlineSeconds }}
{{- $all = .Values.deadlineSeconds }}
{{- else if eq .Values.run "load" }}
{{- $all = 600.0 }}
{{- $units := dict "ms" 0.001 "s" 1.0 "m" 60.0 "h" 3600.0 }}
{{- range regexFindAll "[0-9.]+(ms|s|m|h)" .Values.load.duration -1 }}
{{- $unit := regexFind "[a-z]+" . }}
{{- $all = addf $all (mulf (trimSuffix $unit . | float64) (get $units $unit)) }}
{{- end }}
{{- end }}
{{- $all | ceil | int64 }}
{{- end }}

{{- /* Of a job. It also ends a pod that no node accepts, to which the pod's own does not apply. */}}
{{- define "prony.jobDeadline" -}}
{{ add (include "prony.deadline" .) 120 }}
{{- end }}

{{- define "prony.results" -}}
{{- if and .Values.results.persistent (not .Values.results.bucket.place) }}
persistentVolumeClaim: {claimName: {{ .Values.results.claim | default (include "prony.name" .) }}}
{{- else }}
emptyDir: {sizeLimit: {{ .Values.results.size }}}
{{- end }}
{{- end }}

{{- /* The bucket, for whoever speaks to it. */}}
{{- define "prony.bucket" -}}
{{- with .Values.results.bucket }}
{{- if .place }}
{{- with .endpoint }}
- {name: AWS_ENDPOINT_URL, value: {{ . | quote }}}
{{- end }}
{{- with .region }}
- {name: AWS_REGION, value: {{ . | quote }}}
{{- end }}
{{- $secret := .secret }}
{{- range list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" }}
- {name: {{ . }}, valueFrom: {secretKeyRef: {name: {{ $secret }}, key: {{ . }}}}}
{{- end }}
- name: AWS_SESSION_TOKEN
  valueFrom: {secretKeyRef: {name: {{ $secret }}, key: AWS_SESSION_TOKEN, optional: true}}
{{- end }}
{{- end }}
{{- end }}

{{- /* Before the arguments of what leaves results: they are kept in the bucket. */}}
{{- define "prony.keep" -}}
{{- with .Values.results.bucket.place }}
- store
- keep
- {{ . | quote }}
- /results
- --
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
{{- $bucket := $v.results.bucket }}
{{- if ne (empty $bucket.place) (empty $bucket.secret) }}
{{- fail "results.bucket: name both its place and the Secret with its key, or none" }}{{ end }}
{{- if and $bucket.place $v.results.claim }}
{{- fail "results: choose one of bucket and claim" }}{{ end }}
{{- $kept := or $v.results.persistent $bucket.place }}
{{- if and $v.gate.enabled (not $kept) }}
{{- fail "gate: it needs the last good run: results.persistent, or a bucket" }}{{ end }}
{{- if and $v.serve.enabled (not $kept) }}
{{- fail "serve: it shows results that are kept: results.persistent, or a bucket" }}{{ end }}
{{- if ne (empty $v.identity.labSecret) (empty $v.identity.generatorSecret) }}
{{- fail "identity: name both Secrets, or none" }}{{ end }}
{{- end }}
