#!/usr/bin/env bash
# Removes what up.sh made: the kind cluster, with its context and its data, and the image.
set -euo pipefail

missing=()
for tool in docker kind; do
  if ! command -v "$tool" >/dev/null; then missing+=("$tool"); fi
done
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "Removing the demo needs what is not here: ${missing[*]}" >&2
  exit 2
fi

kind delete cluster --name flux-resourceset-demo
if docker image inspect flux-resourceset:demo >/dev/null 2>&1; then docker image rm flux-resourceset:demo; fi
