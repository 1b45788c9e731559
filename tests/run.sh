#!/usr/bin/env bash
# Installs, builds and runs the tests. Usage: tests/run.sh [--all|--cuda|--cpu [default|avx2|avx512]...]
#   --all   adds sanitizers, clang and clang-tidy, and, without sanitizers, the instances of tests that are called Long
#   --cuda  instead: builds the programs with PyPI's own torch wheel, the CUDA build, and trains a short run; needs no GPU
#   --cpu   instead: runs the tests once per named instruction set, by default with each that this machine has
# Prints a line per phase and CTest's summary last. CTest's whole output is in FOLDER/Testing/Temporary/LastTest.log.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/phases.sh

# run_tests FOLDER [OPTION...]: runs CTest with these options. Shows failed tests with their output and the summary;
# of passed ones a line that is rewritten on a terminal, and a line for each tenth elsewhere.
run_tests() {
  local command=(ctest --test-dir "$1" --output-on-failure -j "$(nproc)" "${@:2}")
  if [ -t 1 ]; then
    "${command[@]}" --progress
  else
    "${command[@]}" 2>&1 | show_tenths tests all
  fi
}

plain=(--exclude-regex '^Long/')  # leaves out the long tests

# Prints the instruction sets that the libraries distinguish and this machine has.
instruction_sets() {
  echo default
  ! grep -qw avx2 /proc/cpuinfo || echo avx2
  ! grep -qw avx512f /proc/cpuinfo || echo avx512
}

# run_tests_on SET: runs the tests with LibTorch, the native kernels, MKL and oneDNN limited to an instruction set.
run_tests_on() {
  local mkl onednn
  case "$1" in
    default) mkl=SSE4_2 onednn=SSE41 ;;
    avx2) mkl=AVX2 onednn=AVX2 ;;
    avx512) mkl=AVX512 onednn=AVX512_CORE ;;
    *) echo "--cpu: unknown instruction set ($1); expected default, avx2 or avx512" >&2; exit 64 ;;
  esac
  echo "Testing with the instruction set $1"
  ATEN_CPU_CAPABILITY=$1 MKL_ENABLE_INSTRUCTIONS=$mkl ONEDNN_MAX_CPU_ISA=$onednn run_tests build "${plain[@]}"
}

# smoke_training FOLDER: a personal server of the programs in FOLDER trains one run, and its loss falls.
smoke_training() (
  PATH="$PWD/$1:$PATH" ABLATE_HOME=$(mktemp -d)
  export PATH ABLATE_HOME
  trap 'ablate down || true; rm -rf "$ABLATE_HOME"' EXIT
  ablate up
  id=$(ablate submit examples/names-norm.yaml --seeds 42..42 --set training.steps=100 --set 'training.checkpoints=[0, -1]' --wait |
    cut -d' ' -f1)
  ablate metrics "$id" --key eval/loss --csv | awk -F, '
    NR > 1 { if (!($1 in first)) first[$1] = $NF; last[$1] = $NF }
    END { for (run in first) { runs++; if (last[run] < first[run]) fell++ }
          printf "%d passed, %d failed\n", fell, runs - fell; exit runs == 0 || fell < runs }'
)

# says_why_no_gpu FOLDER: without a GPU, the worker in FOLDER has the plugin, and says why it can't use one.
says_why_no_gpu() {
  local words status=0
  [ -e "$1/libablate_cuda.so" ] || { echo "there is no $1/libablate_cuda.so" >&2; exit 1; }
  ! nvidia-smi >/dev/null 2>&1 || return 0
  words=$("$1/ablate-worker" --list-devices 2>&1) || status=$?
  echo "ablate-worker --list-devices: $words"
  [ "$status" -eq 7 ] || { echo "it exits with $status; expected 7" >&2; exit 1; }
}

case "${1:-}" in
  '')
    deploy/setup.sh --tests
    run_tests build "${plain[@]}"
    ;;
  --cuda)
    deploy/setup.sh --cuda
    says_why_no_gpu build/cuda/bin
    smoke_training build/cuda/bin
    ;;
  --cpu)
    shift
    [ $# -gt 0 ] || set -- $(instruction_sets)
    deploy/setup.sh --tests
    for instructions in "$@"; do run_tests_on "$instructions"; done
    ;;
  --all)
    deploy/setup.sh --all
    begin_log build/sanitizers.log
    for preset in asan tsan; do
      phase "Configuring build/$preset" cmake --preset "$preset"
      compile "Compiling the tests with the sanitizers of $preset (25 minutes the first time)" "build/$preset"
      LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp" TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" \
        run_tests "build/$preset" "${plain[@]}"
    done
    tests/tidy.sh
    run_tests build
    ;;
  *) echo "usage: tests/run.sh [--all|--cuda|--cpu [default|avx2|avx512]...]" >&2; exit 64 ;;
esac
