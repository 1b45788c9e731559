#!/usr/bin/env bash
# Formatting, clang's thread-safety analysis and clang-tidy over our own sources.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
cmake --preset tidy >/dev/null
cmake --build --preset tidy
git ls-files 'storage/*.cc' 'server/*.cc' 'client/*.cc' 'proto/*.cc' |
  xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build/tidy
