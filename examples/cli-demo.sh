#!/usr/bin/env bash
# A tour of the command line on the demo fleet: look, change, preview, apply, look back, take it back.
# It starts a service of its own, in memory, unless FLUX_API_URL names one; the fleet is in the end what it was.
set -euo pipefail
cd "$(dirname "$0")/.."
work=$(mktemp -d)
finish() {
  if [[ -n ${service:-} ]]; then kill "$service" 2>/dev/null || true; wait "$service" 2>/dev/null || true; fi
  rm -rf "$work"
}
trap finish EXIT

if [[ -z ${FLUX_API_URL:-} ]]; then
  export FLUX_API_TOKEN=demo-read-token FLUX_API_WRITE_TOKEN=demo-write-token
  # Here already when it is read below: the service opens it in its own time.
  : > "$work/service.log"
  API_MODE=crud STORE_BACKEND=memory SEED_FILE=data/seed.json LISTEN_ADDR=127.0.0.1:0 \
    AUTH_TOKEN=$FLUX_API_TOKEN CRUD_AUTH_TOKEN=$FLUX_API_WRITE_TOKEN node src/main.ts > "$work/service.log" 2>&1 &
  service=$!
  for _ in $(seq 600); do
    port=$(sed -nE 's/.*"port":([0-9]+)\}.*"msg":"ready".*/\1/p' "$work/service.log")
    if [[ -n $port ]]; then break; fi
    sleep 0.1
  done
  if [[ -z $port ]]; then cat "$work/service.log" >&2; exit 1; fi
  export FLUX_API_URL=http://127.0.0.1:$port
fi

cli() { node bin/flux-resourceset-cli.cjs "$@"; }
title() { printf '\n# %s\n' "$1"; }
# Shows a command as you would type it, then runs it.
try() {
  local line='flux-resourceset-cli' word
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:=@-]+$ ]]; then line+=" $word"; else line+=" '$word'"; fi
  done
  printf '\n$ %s\n' "$line"
  cli "$@"
}
# The same for a change, whose revision is noted.
revisions=()
change() {
  try "$@" | tee "$work/change"
  revisions=("$(sed -nE 's/.*\(revision ([0-9]+)\).*/\1/p' "$work/change")" "${revisions[@]}")
}
# What the cluster receives, in lines that can be compared: without digests, which change with any of them.
received() { cli cluster inputs demo-cluster-01 -o yaml | sed -E '/^ +(answer_)?digest: /d'; }

title 'The server and its fleet'
try status
try cluster list
received > "$work/before"

title 'A namespace for one cluster'
change namespace create demo-runtime --cluster demo-cluster-01 --label team=demo --annotation owner=you -m 'a place to try things'

title 'More replicas of podinfo there'
change component patch podinfo --cluster demo-cluster-01 --set replicaCount=3 --set ui.message='Hello from the tour'

title 'What the cluster receives differently'
received > "$work/after"
diff -U 1 --label before --label after "$work/before" "$work/after" || [[ $? -eq 1 ]]

title 'A new Traefik for dev: preview it, then do exactly that'
upgrade=(component assign traefik --selector environment=dev --existing --oci-tag 34.0.0)
try "${upgrade[@]}" --dry-run
plan=$(cli "${upgrade[@]}" --dry-run -o 'jsonpath={.plan}')
change "${upgrade[@]}" --plan "$plan" -m 'Traefik 34 for dev'

title 'Who did what'
try log --limit 3
try show "${revisions[0]}"

title 'And back again'
for revision in "${revisions[@]}"; do
  try revert "$revision" --yes -m 'the tour is over'
done
received > "$work/restored"
if ! diff -u "$work/before" "$work/restored"; then
  echo 'the cluster does not receive what it received before the tour' >&2
  exit 1
fi
title 'The cluster receives what it received before'
