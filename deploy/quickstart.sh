#!/usr/bin/env bash
# From a fresh machine to an answer: installs, builds, starts a personal server, trains names-norm, writes report.html.
# Usage: deploy/quickstart.sh    a second time it reuses what is there
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ $# -gt 0 ]; then
  echo "usage: deploy/quickstart.sh" >&2
  exit 64
fi

deploy/setup.sh
export PATH="$PWD/build/bin:$PATH"
ablate up

echo "Training examples/names-norm.yaml: 3 placements × 5 learning rates × 12 seeds = 180 runs."
submitted=$(ablate submit examples/names-norm.yaml --wait --json)
experiment=$(python3 -c 'import json, sys; print(json.load(sys.stdin)["experiment"]["name"].split("/")[1])' <<<"$submitted")

echo
ablate compare "$experiment"
echo
ablate report "$experiment" -o report.html
cat <<TEXT

What to try next (build/bin is where the programs are):
  open report.html                                     the same with figures, samples and where every number comes from
  ablate figure $experiment sensitivity -o sensitivity.png
  ablate generate $experiment/none-lr0.004-s42 --temperature 0.5
  ablate runs $experiment                              one line a run
  ablate metrics $experiment --key eval/loss --csv     every number
  ablate submit examples/names-norm.yaml --seeds 42..45 --set model.layers=4 --wait
  ablate down                                          stop the server; nothing is lost
TEXT
