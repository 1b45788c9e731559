#!/usr/bin/env bash
# Checks and measures training and analyses on this machine's GPU, in about five minutes each, and writes a Markdown page.
# Usage: deploy/gpu-check.sh [--programs FOLDER] [--page FILE] [--checks|--measurements]
#   --programs  ready programs (ablate, ablated, ablate-worker, libablate_cuda.so, gpu_analyses, gpu_check, gpu_trainer);
#               without it, they are installed and built by deploy/setup.sh --tests
#   --page      where to write the page [build/gpu-check.md]
#   --checks, --measurements  do only these
# Needs no network with --programs. Prints "ok" or "FAILED" per check, and exits with 1 if one failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

programs='' page=build/gpu-check.md only=
while [ $# -gt 0 ]; do
  case "$1" in
    --programs) programs=$2; shift 2 ;;
    --page) page=$2; shift 2 ;;
    --checks | --measurements) only=$1; shift ;;
    *) sed -n '3,7s/^# //p' "$0" >&2; exit 64 ;;
  esac
done

if [ -z "$programs" ]; then
  deploy/setup.sh --tests
  programs=$(mktemp -d)
  ln -s "$PWD"/build/bin/* "$PWD"/build/tests/gpu_{analyses,check,trainer} "$programs"
fi
programs=$(cd "$programs" && pwd)
plugin=$programs/libablate_cuda.so
work=$(mktemp -d)
export PATH="$programs:$PATH"

cleanup() {
  for home in "$work"/*/; do ABLATE_HOME=$home ablate down >/dev/null 2>&1 || true; done
  rm -rf "$work"
}
trap cleanup EXIT

# check NAME COMMAND...: prints whether the command succeeds, and the end of its output if not.
check() {
  local name=$1 began=$SECONDS
  shift
  if "$@" >"$work/output" 2>&1; then
    echo "ok $name ($((SECONDS - began)) s)"
  else
    echo "FAILED $name ($((SECONDS - began)) s)"
    tail -n 15 "$work/output" | cut -c1-500
  fi
}

# serve NAME: starts a personal server with a folder of its own, and waits for its GPU worker.
serve() {
  export ABLATE_HOME=$work/$1
  ablate up --devices cuda:0 --gpu-lanes 8 --resume-every 1
  for _ in $(seq 60); do
    ablate workers | grep -q '^cuda-0-train.*IDLE' && return
    sleep 1
  done
  ablate workers
  tail -n 5 "$ABLATE_HOME"/log/*
  return 1
}

# Submits the runs that the server's checks train.
submit() {
  ablate submit tests/gpu/kills.yaml --data examples/data/names.txt "$@" >"$work/submitted"
  tail -n 2 "$work/submitted"
}

# export_runs FILE: writes the numbers of the experiment that was submitted last.
export_runs() { ablate metrics "$(cut -d' ' -f1 "$work/submitted" | head -n 1)" --csv >"$1"; }

calm() { serve calm && ablate workers && submit --wait && export_runs "$work/calm.csv" && ablate down; }

# Kills the GPU's worker two seconds after it has begun to train.
kill_worker() {
  local pid
  for _ in $(seq 60); do
    if ablate workers | grep '^cuda-0-train ' | grep -qv 'IDLE\|STALLED'; then
      sleep 2
      read -r pid _ <"$ABLATE_HOME/run/cuda-0-train.pid"
      kill -KILL "$pid"
      return
    fi
    sleep 1
  done
  echo "the GPU's worker doesn't train"
  return 1
}

# Trains the same runs while their worker is killed three times.
killed() {
  serve killed && submit && kill_worker && kill_worker && kill_worker &&
    timeout 200 ablate wait "$(cut -d' ' -f1 "$work/submitted" | head -n 1)" && export_runs "$work/killed.csv" && ablate down
}

same_after_kills() { calm && killed && cmp "$work/calm.csv" "$work/killed.csv"; }

# Prints the first Python whose torch sees the GPU.
python_with_gpu() {
  for python in build/venv/bin/python python3; do
    "$python" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null && echo "$python" && return
  done
  return 1
}

# Runs a user's program on the GPU, in the sandbox if bubblewrap works here.
program_on_gpu() {
  local python mode=sandboxed
  python=$(python_with_gpu) || { echo "no Python with a torch that sees the GPU"; return 1; }
  bwrap --ro-bind / / --unshare-user true 2>/dev/null || mode=unsandboxed
  export ABLATE_HOME=$work/program
  ablate up --devices cuda:0 --programs "$mode" --environment "gpu=$(realpath -s "$(command -v "$python")")" &&
    timeout 120 ablate submit tests/gpu/program.yaml --wait && ablate workers
  local status=$?
  ablate down
  return "$status"
}

run_checks() {
  echo '```'
  "$programs/gpu_check" "$plugin" || echo "FAILED gpu_check"
  check "the same numbers after three kills of the worker" same_after_kills
  check "a program that sees its GPU" program_on_gpu
  for lanes in 8 16; do timeout 120 "$programs/gpu_trainer" names-grid "$lanes" "$plugin" || echo "FAILED names grid"; done
  echo '```'
}

measure() {
  local python
  timeout 240 "$programs/gpu_analyses" "$plugin" || echo "FAILED analyses"
  python=$(python_with_gpu) || return 0
  printf '#!/bin/sh\nexec "%s/gpu_trainer" "$1" "$2" "%s"\n' "$programs" "$plugin" >"$work/ours"
  chmod +x "$work/ours"
  "$python" tests/bench/gpu_vs_pytorch.py --ours "$work/ours" --lanes 1,16 --budget 200 --markdown "$work/page.md" >/dev/null &&
    cat "$work/page.md" || echo "FAILED the comparison with PyTorch"
}

mkdir -p "$(dirname "$page")"
{
  echo "# Training on a GPU: $(date -u +%Y-%m-%d)"
  echo
  echo "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader), $(nproc) cores."
  echo
  if [ "$only" != --measurements ]; then run_checks; fi
  if [ "$only" != --checks ]; then measure; fi
} | tee "$page"
echo "The page is $page"
! grep -q '^FAILED' "$page"
