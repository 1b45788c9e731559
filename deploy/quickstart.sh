#!/usr/bin/env bash
# Installs, builds, starts a personal server, trains names-norm, writes report.html. Reuses what is there already.
# Installs the packages in dist/ instead of building, if deploy/package.sh has made them.
# Usage: deploy/quickstart.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/phases.sh

if [ $# -gt 0 ]; then
  echo "usage: deploy/quickstart.sh" >&2
  exit 64
fi

if compgen -G 'dist/ablate_*.deb' >/dev/null; then
  deploy/install.sh dist
else
  deploy/setup.sh
  export PATH="$PWD/build/bin:$PATH"
fi
ablate up

echo "Training examples/names-norm.yaml: 3 placements × 5 learning rates × 12 seeds = 180 runs"
began=$SECONDS
submitted=$(ablate submit examples/names-norm.yaml --wait --json)
echo "  Trained in $(duration $((SECONDS - began)))"
experiment=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["experiment"]["name"].split("/")[1])' <<<"$submitted")

echo
ablate compare "$experiment"
echo
ablate report "$experiment" -o report.html
cat <<TEXT

Open report.html in a browser: figures, tables, samples, methods. Then try:

  export PATH=\$PWD/build/bin:\$PATH              # unless packages were installed
  ablate figure $experiment sensitivity -o sensitivity.png
  ablate generate $experiment/none-lr0.004-s42 --temperature 0.5
  ablate runs $experiment
  ablate metrics $experiment --key eval/loss --csv
  ablate submit examples/names-norm.yaml --seeds 42..45 --set model.layers=4 --wait
  ablate down                                     # stop the server; the data stay
TEXT
