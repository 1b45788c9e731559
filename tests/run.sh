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

deploy/setup.sh --tests

if [ "$all" = yes ]; then
  for preset in asan tsan; do
    cmake --preset "$preset" >/dev/null
    cmake --build --preset "$preset"
    ctest --test-dir "build/$preset" --output-on-failure -j "$(nproc)" -LE "$([ "$preset" = tsan ] && echo grpc || echo none)"
  done
  tests/tidy.sh
fi

ctest --test-dir build --output-on-failure -j "$(nproc)"
