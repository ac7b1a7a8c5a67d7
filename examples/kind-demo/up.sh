#!/usr/bin/env bash
# The whole loop on this machine: a kind cluster with the Flux Operator, the API with the demo fleet, and one of its
# clusters that phones home. It can be run again at any time; examples/kind-demo/down.sh removes everything.
set -euo pipefail
cd "$(dirname "$0")/../.."

readonly cluster=flux-resourceset-demo context=kind-flux-resourceset-demo image=flux-resourceset:demo
# The Flux Operator that the tests of this repository run.
operator=$(awk '$1 ~ "/flux-operator$" { sub("^v", "", $2); print $2 }' tools/flux/go.mod)

work=$(mktemp -d)
current=
step() { current=$1; printf '\n==> %s\n' "$current"; }
finish() {
  local code=$?
  if [[ -n ${forward:-} ]]; then kill "$forward" 2>/dev/null || true; wait "$forward" 2>/dev/null || true; fi
  rm -rf "$work"
  if [[ $code -ne 0 && -n $current ]]; then
    printf '\nThe demo stopped at: %s\nMend what it says above and run it again; what is done is kept.\n' "$current" >&2
  fi
}
trap finish EXIT

missing=()
need() { command -v "$1" >/dev/null || missing+=("$1: $2"); }
need docker https://docs.docker.com/get-docker/
need kind https://kind.sigs.k8s.io/docs/user/quick-start/#installation
need kubectl https://kubernetes.io/docs/tasks/tools/
need helm https://helm.sh/docs/intro/install/
need node 'https://nodejs.org/en/download, version 20 or newer'
need npm 'comes with Node'
if command -v docker >/dev/null && ! docker info >/dev/null 2>&1; then
  missing+=('docker: it is installed, but does not answer; start it, and see that "docker info" works')
fi
if [[ ${#missing[@]} -gt 0 ]]; then
  { echo 'The demo needs what is not here:'; printf '  %s\n' "${missing[@]}"; } >&2
  exit 2
fi

# Whatever cluster kubectl and helm are set to: they talk to the demo's, here and nowhere else.
kubectl() { command kubectl --context "$context" "$@"; }
helm() { command helm --kube-context "$context" "$@"; }

if [[ ! -e node_modules/.bin/node ]]; then
  step 'Install the command line'
  npm ci --no-progress
fi

step "Start the kind cluster $cluster"
clusters=$(kind get clusters)
if grep -qx "$cluster" <<<"$clusters"; then
  kind export kubeconfig --name "$cluster"
else
  kind create cluster --name "$cluster" --wait 3m
fi

step "Build the image $image and load it into the cluster"
docker build --tag "$image" .
kind load docker-image "$image" --name "$cluster"

step "Install the Flux Operator $operator"
helm upgrade --install flux-operator oci://ghcr.io/controlplaneio-fluxcd/charts/flux-operator --version "$operator" \
  --namespace flux-system --create-namespace --wait --timeout 5m

step 'Start the API with the demo fleet'
had_api=$(kubectl -n flux-resourceset get deployment flux-resourceset --ignore-not-found -o name)
kubectl apply -k examples/kind-demo
# The tag is the same as last time, the image may be another.
if [[ -n $had_api ]]; then kubectl -n flux-resourceset rollout restart deployment/flux-resourceset; fi
kubectl -n flux-resourceset rollout status deployment/flux-resourceset --timeout 3m

step 'Let the cluster phone home as demo-cluster-01, every 30 seconds'
: >"$work/forward"
# Not by the function, so that the process to end is kubectl's own.
env kubectl --context "$context" -n flux-resourceset port-forward service/flux-resourceset-crud :80 >"$work/forward" &
forward=$!
for _ in $(seq 100); do
  port=$(sed -nE 's/^Forwarding from 127\.0\.0\.1:([0-9]+) .*/\1/p' "$work/forward")
  if [[ -n $port ]] || ! kill -0 "$forward" 2>/dev/null; then break; fi
  sleep 0.1
done
if [[ -z $port ]]; then echo 'kubectl port-forward opened no port' >&2; exit 1; fi
# Run again, it gives the cluster another token, and the one before ends at once.
FLUX_API_URL=http://127.0.0.1:$port FLUX_API_TOKEN=demo-read-token FLUX_API_WRITE_TOKEN=demo-write-token \
  npm run --silent cli -- bootstrap demo-cluster-01 --interval 30s --with-token --token-grace 0s >"$work/bundle.yaml"
kubectl apply -f "$work/bundle.yaml"

step 'Wait until Flux itself runs'
kubectl -n flux-system wait fluxinstance/flux --for condition=Ready --timeout 5m
step 'Wait until the cluster has polled'
# What the bundle brought, not what ResourceSets make: marks come and go.
readonly brought='!resourceset.fluxcd.controlplane.io/name'
kubectl -n flux-system wait resourcesetinputprovider -l "$brought" --for condition=Ready --timeout 2m
step 'Wait until what it was given is applied'
kubectl -n flux-system wait resourceset -l "$brought" --for condition=Ready --timeout 5m
step 'Wait for podinfo, which waits for cert-manager and Traefik'
kubectl -n flux-system wait helmrelease/podinfo --for condition=Ready --timeout 10m
kubectl -n podinfo get pods

cat <<END

The cluster runs what the API says. To change that, open the API in another terminal:
  kubectl --context $context -n flux-resourceset port-forward service/flux-resourceset-crud 8080:80
then here, and within 30 seconds the cluster follows:
  make cli ARGS='component patch podinfo --cluster demo-cluster-01 --set replicaCount=3'
  kubectl --context $context -n podinfo get pods --watch
  make cli ARGS='namespace create team-sandbox --cluster demo-cluster-01'
  kubectl --context $context get namespace team-sandbox
A tour of the command line on this API, which leaves it as it was:
  FLUX_API_URL=http://127.0.0.1:8080 FLUX_API_TOKEN=demo-read-token FLUX_API_WRITE_TOKEN=demo-write-token make cli-demo
What Flux says:
  kubectl --context $context -n flux-system get resourcesetinputproviders,resourcesets,helmreleases
Remove everything:
  make demo-delete
END
