{{- /* The lab's job. */}}
{{- define "prony.lab" -}}
backoffLimit: 0
activeDeadlineSeconds: {{ include "prony.jobDeadline" . }}
ttlSecondsAfterFinished: {{ .Values.keepSeconds }}
template:
  metadata:
    labels:
      {{- include "prony.part" (list . "lab") | nindent 6 }}
      prony/run: {{ include "prony.run" . }}
  spec:
    restartPolicy: Never
    activeDeadlineSeconds: {{ include "prony.deadline" . }}
    {{- include "prony.pod" . | nindent 4 }}
    {{- include "prony.place" .Values.lab | nindent 4 }}
    containers:
      - name: lab
        {{- include "prony.measure" . | nindent 8 }}
    volumes:
      - name: results
        {{- include "prony.results" . | nindent 8 }}
      - name: work
        emptyDir: {sizeLimit: 64Mi}
      - name: tmp
        emptyDir: {sizeLimit: 64Mi}
      {{- if eq .Values.run "suite" }}
      - name: project
        configMap: {name: {{ include "prony.run" . }}}
      {{- end }}
      {{- if .Values.generators }}
      - name: identity
        secret: {secretName: {{ include "prony.labSecret" . }}, defaultMode: 0440}
      {{- end }}
{{- end }}

{{- define "prony.measure" -}}
{{ include "prony.container" . }}
args:
  {{- with include "prony.keep" . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- if .Values.gate.enabled }}
  - gate
  - /results/$(POD_NAME)
  - --last-good=/results/good
  - {{ printf "--max-regression=%s" .Values.gate.maxRegression | quote }}
  - --inconclusive={{ .Values.gate.inconclusive }}
  - --
  {{- end }}
  {{- if eq .Values.run "suite" }}
  - run
  - --out=/results/$(POD_NAME)
  {{- range .Values.suite.hosts }}
  - {{ printf "--remote=%s" . | quote }}
  {{- end }}
  {{- range .Values.suite.arguments }}
  - {{ . | quote }}
  {{- end }}
  {{- else }}
  - load
  - {{ .Values.url | quote }}
  - --save=/results/$(POD_NAME)
  - --view=plain
  - {{ printf "--remote=%s" (include "prony.host" .) | quote }}
  - --duration={{ .Values.load.duration }}
  - --connections={{ .Values.load.connections | int }}
  {{- with .Values.load.rate }}
  - {{ printf "--rate=%v" . | quote }}
  {{- end }}
  {{- with .Values.load.threshold }}
  - {{ printf "--threshold=%s" . | quote }}
  {{- end }}
  {{- if .Values.generators }}
  - --generators={{ .Values.generators | int }}
  - --listen=0.0.0.0:7070
  - --identity=/identity
  {{- end }}
  {{- range .Values.load.arguments }}
  - {{ . | quote }}
  {{- end }}
  {{- end }}
{{ include "prony.around" . }}
{{- end }}

{{- /* Kubernetes puts the pod's name into arguments. */}}
{{- define "prony.around" -}}
workingDir: /work
env:
  - name: POD_NAME
    valueFrom: {fieldRef: {fieldPath: metadata.name}}
  - {name: HOME, value: /tmp}
  {{- with include "prony.bucket" . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
resources: {{ toJson .Values.lab.resources }}
volumeMounts:
  - {name: results, mountPath: /results}
  - {name: work, mountPath: /work}
  - {name: tmp, mountPath: /tmp}
  {{- if eq .Values.run "suite" }}
  - {name: project, mountPath: /work/prony.yaml, subPath: prony.yaml, readOnly: true}
  {{- end }}
  {{- if .Values.generators }}
  - {name: identity, mountPath: /identity, readOnly: true}
  {{- end }}
{{- end }}

{{- /* The generators' job. A lost generator makes the load INVALID, is not replaced, and leaves the
others running: a limit of the whole job would end them, too. */}}
{{- define "prony.generators" -}}
completionMode: Indexed
completions: {{ .Values.generators | int }}
parallelism: {{ .Values.generators | int }}
backoffLimitPerIndex: 0
activeDeadlineSeconds: {{ include "prony.jobDeadline" . }}
ttlSecondsAfterFinished: {{ .Values.keepSeconds }}
template:
  metadata:
    labels:
      {{- include "prony.part" (list . "generator") | nindent 6 }}
      prony/run: {{ include "prony.run" . }}
  spec:
    restartPolicy: Never
    activeDeadlineSeconds: {{ include "prony.deadline" . }}
    {{- include "prony.pod" . | nindent 4 }}
    {{- include "prony.place" .Values.generator | nindent 4 }}
    {{- if not .Values.generator.affinity }}
    topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels:
            {{- include "prony.part" (list . "generator") | nindent 12 }}
    {{- end }}
    containers:
      - name: generator
        {{- include "prony.container" . | nindent 8 }}
        args: [generate, "--of={{ include "prony.run" . }}-lab:7070", --wait=5m]
        env:
          - name: PRONY_KEY
            valueFrom: {secretKeyRef: {name: {{ include "prony.generatorSecret" . }}, key: key}}
        resources: {{ toJson .Values.generator.resources }}
{{- end }}
