#!/usr/bin/env bash
# From a fresh machine to an answer: installs, builds, starts a personal server, trains names-norm, writes report.html.
# Usage: deploy/quickstart.sh [--all]    --all trains the whole file (180 runs) and reuses what is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=no
case "${1:-}" in
  '') ;;
  --all) all=yes ;;
  *) echo "usage: deploy/quickstart.sh [--all]" >&2; exit 64 ;;
esac

deploy/setup.sh
export PATH="$PWD/build/bin:$PATH"
ablate up

if [ "$all" = yes ]; then
  echo "Training the whole of examples/names-norm.yaml: 3 placements × 5 learning rates × 12 seeds = 180 runs."
  file=(names-norm.yaml)
else
  echo "Training a part of examples/names-norm.yaml that fits into about four minutes on two cores:"
  echo "3 placements × 4 learning rates × 8 seeds = 96 of its 180 runs. The whole: deploy/quickstart.sh --all"
  file=(- --seeds 42..49)
fi
part=$(sed 's/values: \[0.001, 0.002, 0.004, 0.01, 0.02\]/values: [0.001, 0.002, 0.004, 0.01]/' examples/names-norm.yaml)
if cmp -s examples/names-norm.yaml - <<<"$part"; then
  echo "examples/names-norm.yaml no longer has the learning rates that this script takes four of" >&2
  exit 1
fi
submit() {
  cd examples
  ablate submit "${file[@]}" --wait --json <<<"$part"
}
experiment=$(submit | python3 -c 'import json, sys; print(json.load(sys.stdin)["experiment"]["name"].split("/")[1])')

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
  deploy/quickstart.sh --all                           all 180 runs; these are reused
  ablate down                                          stop the server; nothing is lost
TEXT
