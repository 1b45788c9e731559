#!/usr/bin/env bash
# Installs, builds and passes every test. Usage: tests/run.sh [--all|--cuda|--cpu [default|avx2|avx512]...]
#   --all   adds sanitizers, clang and clang-tidy, and the instances of tests that are called Long
#   --cuda  instead: builds the programs with PyPI's own torch wheel, the CUDA build, and trains a short run; a GPU is not needed
#   --cpu   passes the tests as on lesser processors: once per named instruction set, by default with each that this machine has
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# run_tests FOLDER [OPTION...]: options of ctest.
run_tests() { ctest --test-dir "$1" --output-on-failure -j "$(nproc)" "${@:2}"; }

plain=(--exclude-regex '^Long/')  # the plain command's tests

# Prints the instruction sets that the libraries tell apart and this machine has.
instruction_sets() {
  echo default
  ! grep -qw avx2 /proc/cpuinfo || echo avx2
  ! grep -qw avx512f /proc/cpuinfo || echo avx512
}

# run_tests_on SET: with LibTorch, the native kernels, MKL and oneDNN bounded to an instruction set.
run_tests_on() {
  local mkl onednn
  case "$1" in
    default) mkl=SSE4_2 onednn=SSE41 ;;
    avx2) mkl=AVX2 onednn=AVX2 ;;
    avx512) mkl=AVX512 onednn=AVX512_CORE ;;
    *) echo "--cpu: $1 is not an instruction set; expected default, avx2 or avx512" >&2; exit 64 ;;
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

case "${1:-}" in
  '')
    deploy/setup.sh --tests
    run_tests build "${plain[@]}"
    ;;
  --cuda)
    deploy/setup.sh --cuda
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
    for preset in asan tsan; do
      cmake --preset "$preset" >/dev/null
      cmake --build --preset "$preset"
      LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp" TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" \
        run_tests "build/$preset"
    done
    tests/tidy.sh
    run_tests build
    ;;
  *) echo "usage: tests/run.sh [--all|--cuda|--cpu [default|avx2|avx512]...]" >&2; exit 64 ;;
esac
