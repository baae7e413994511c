{{- /* Name of all resources: the release, with the chart unless it says so already. */ -}}
{{- define "rondel.name" -}}
{{- if contains "rondel" .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-rondel" .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "rondel.selector" -}}
app.kubernetes.io/name: rondel
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "rondel.labels" -}}
{{ include "rondel.selector" . }}
app.kubernetes.io/component: {{ .Values.mode }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "rondel.configMap" -}}
{{- .Values.config.existingConfigMap | default (include "rondel.name" .) -}}
{{- end -}}

{{- define "rondel.replicas" -}}
{{- if eq .Values.mode "kafka" -}}
{{- .Values.kafka.replicas -}}
{{- else if .Values.monitor.standby.enabled -}}
2
{{- else -}}
1
{{- end -}}
{{- end -}}

{{- /* Whether the replicas have a common volume. */ -}}
{{- define "rondel.isShared" -}}
{{- if or (eq .Values.mode "kafka") (and (eq .Values.mode "monitor") .Values.shared.enabled) -}}
true
{{- end -}}
{{- end -}}

{{- define "rondel.sharedClaim" -}}
{{- .Values.shared.existingClaim | default (printf "%s-shared" (include "rondel.name" .)) -}}
{{- end -}}

{{- /* Mistakes that a schema cannot describe. */ -}}
{{- define "rondel.check" -}}
{{- $values := .Values -}}
{{- $own := not $values.config.existingConfigMap -}}
{{- if and $values.monitor.standby.enabled (ne $values.mode "monitor") -}}
{{- fail "monitor.standby needs `mode: monitor`" -}}
{{- end -}}
{{- if and $own $values.monitor.standby.enabled (not (regexMatch "(?m)^group:" $values.config.deployment)) -}}
{{- fail "monitor.standby needs the section `group` in config.deployment: without it, both monitors publish every verdict" -}}
{{- end -}}
{{- if and $own (eq $values.mode "kafka") (not (and (regexMatch "\\bgroup:" $values.config.deployment) (regexMatch "state:\\s*[\"']?/shared" $values.config.deployment))) -}}
{{- fail "`mode: kafka` needs `group` and `state: /shared/...` in the section `kafka` of config.deployment: without them, each monitor reads all partitions" -}}
{{- end -}}
{{- if and (eq $values.mode "flink") (not $values.flink.image) -}}
{{- fail "`mode: flink` needs flink.image: an image of Flink with the jar of the job" -}}
{{- end -}}
{{- end -}}
