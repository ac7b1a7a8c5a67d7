#!/usr/bin/env bash
# Installs what the tests with real Flux and Kubernetes tools need, all of it from the Go module proxy: into .tools/bin
# flux-operator, helm, kubectl and a stand-in for Flux's controllers, built here, and into .tools/schemas what API
# servers know of the objects.
set -euo pipefail
cd "$(dirname "$0")"

# The versions of the programs stand in go.mod, where Go reads them.
version_of() { awk -v module="$1" '$1 == module { print $2 }' go.mod; }
flux_operator=$(version_of github.com/controlplaneio-fluxcd/flux-operator)
helm=$(version_of helm.sh/helm/v4)
# The libraries of Kubernetes v1.36.3 are its modules v0.36.3.
kubernetes=$(version_of k8s.io/kubectl | sed 's/^v0/v1/')
# Not the newest: only their schemas are used, and what an old one allows suits clusters with a newer one, too.
prometheus_operator=v0.85.0
cert_manager=v1.18.2

tools=$(cd ../.. && pwd)/.tools
stamp=$tools/installed
wanted="flux-operator $flux_operator, helm $helm, kubectl $kubernetes, prometheus-operator $prometheus_operator, cert-manager $cert_manager
$(cksum install.sh go.mod go.sum kubectl/main.go controllers/main.go)"
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then exit 0; fi

if ! command -v go >/dev/null; then
  echo "The Flux tools are built with Go, and there is no go on the PATH: install Go 1.26 or newer and run this again." >&2
  exit 3
fi

# go.mod says everything: no workspace around it, nothing of the checkout in the programs, no C compiler.
export GOWORK=off GOFLAGS='-mod=readonly -buildvcs=false' CGO_ENABLED=0

# build <program> <version> <package> [the variable that holds its version]
build() {
  echo "building $1 $2 (minutes the first time, seconds once Go has its parts)…" >&2
  go build -ldflags "-s -w ${4:+-X $4=$2}" -o "$tools/bin/$1" "$3"
}

# folder_of <module>@<version>: downloads a module and says where it is.
folder_of() {
  local answer
  answer=$(go mod download -json "$1") || { echo "$answer" >&2 && return 1; }
  sed -n 's/^[[:space:]]*"Dir": "\(.*\)",$/\1/p' <<<"$answer"
}

echo "downloading the schemas of Flux, Kubernetes $kubernetes, Prometheus and cert-manager…" >&2
operator_folder=$(folder_of "github.com/controlplaneio-fluxcd/flux-operator@$flux_operator")
flux_folder=$(find "$operator_folder/config/data/flux" -name 'v2.*' | sort -V | tail -n 1)
kubernetes_folder=$(folder_of "k8s.io/kubernetes@$kubernetes")
prometheus_folder=$(folder_of "github.com/prometheus-operator/prometheus-operator@$prometheus_operator")
cert_manager_folder=$(folder_of "github.com/cert-manager/cert-manager@$cert_manager")

rm -rf "$stamp" "$tools/schemas"
mkdir -p "$tools/bin" "$tools/schemas"
cp "$kubernetes_folder/api/openapi-spec/swagger.json" "$tools/schemas/kubernetes.json"
cp "$operator_folder"/config/crd/bases/*.yaml "$flux_folder"/{*-controller,source-watcher}.yaml \
  "$prometheus_folder"/example/prometheus-operator-crd/*_{servicemonitors,prometheusrules}.yaml \
  "$cert_manager_folder"/deploy/crds/crd-certificates.yaml "$tools/schemas"
chmod u+w "$tools"/schemas/*

build flux-operator "$flux_operator" github.com/controlplaneio-fluxcd/flux-operator/cmd/cli main.VERSION
build kubectl "$kubernetes" ./kubectl k8s.io/component-base/version.gitVersion
build controllers "of Flux" ./controllers
build helm "$helm" helm.sh/helm/v4/cmd/helm helm.sh/helm/v4/internal/version.version

echo "$wanted" >"$stamp"
