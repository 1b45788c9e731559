#!/usr/bin/env bash
# Installs, builds and passes every test. Usage: tests/run.sh [--all]    --all adds sanitizers, clang and clang-tidy.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

all=no
case "${1:-}" in
  '') ;;
  --all) all=yes ;;
  *) echo "usage: tests/run.sh [--all]" >&2; exit 64 ;;
esac

if [ "$all" = yes ]; then
  deploy/setup.sh --all
  for preset in asan tsan; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset"
    TSAN_OPTIONS="suppressions=$PWD/tests/tsan.supp" \
      ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)"
  done
  tests/tidy.sh
else
  deploy/setup.sh --tests
fi

ctest --test-dir build --output-on-failure -j "$(nproc)"
