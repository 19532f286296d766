{{- /* Parts that several objects share. `part` is web, worker, migrate or commands. */ -}}

{{- define "wallet.labels" -}}
app.kubernetes.io/name: merchant-wallet
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "wallet.metadata" -}}
name: {{ .root.Release.Name }}-{{ .part }}
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "wallet.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{- /* What every pod has. `user` is its user id. All processes are in the web processes' group, 10001, which
reads secrets and checkpoints. Service links would look like settings. */ -}}
{{- define "wallet.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: {{ .user }}
  runAsGroup: 10001
  fsGroup: 10001
  # Otherwise each mount would give the group rights to the keys in a volume, and the program refuses such keys.
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toJson . }}
{{- end }}
{{- end }}

{{- define "wallet.container" -}}
image: {{ required "image must name the program's image" .root.Values.image | quote }}
securityContext:
  {{- with .user }}
  runAsUser: {{ . }}
  {{- end }}
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{- define "wallet.settings" -}}
{{- range $name, $value := .root.Values.settings -}}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{ end -}}
{{- end }}

{{- define "wallet.database" -}}
- {name: WALLET_DATABASE_URL_FILE, value: /run/secrets/wallet/database-url}
- {name: WALLET_MASTER_KEY_FILE, value: /run/secrets/wallet/master-key}
{{- end }}

{{- define "wallet.secret" -}}
- name: {{ .name }}
  secret: {secretName: {{ .secret }}, defaultMode: 0440}
{{- end }}

{{- define "wallet.claim" -}}
apiVersion: v1
kind: PersistentVolumeClaim
metadata:
  {{- include "wallet.metadata" . | nindent 2 }}
  annotations: {helm.sh/resource-policy: keep}
spec:
  accessModes: [{{ .mode }}]
  {{- with .storage.storageClass }}
  storageClassName: {{ . }}
  {{- end }}
  resources: {requests: {storage: {{ .storage.size }}}}
{{- end }}

{{- define "wallet.keystore" -}}
- {name: WALLET_DATA, value: /var/lib/merchant-wallet-signer/data}
- {name: WALLET_KEYSTORE_PASSPHRASE_FILE, value: /run/secrets/signer/keystore-passphrase}
{{- end }}
