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
{{- with $values.kafka.deployments -}}
{{- if ne (len .) (int $values.kafka.replicas) -}}
{{- fail (printf "kafka.deployments has %d deployments, and kafka.replicas is %d: write one for each replica" (len .) (int $values.kafka.replicas)) -}}
{{- end -}}
{{- end -}}
{{- if and (eq $values.mode "flink") (not $values.flink.image) -}}
{{- fail "`mode: flink` needs flink.image: an image of Flink with the jar of the job" -}}
{{- end -}}
{{- end -}}
