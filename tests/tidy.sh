#!/usr/bin/env bash
# Formatting, and clang-tidy over our own sources: with clang's warnings, among them the thread-safety analysis, also over the tests.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Files by name on stdin; the rest are further options.
tidy() { xargs -P "$(nproc)" -n 2 clang-tidy --quiet -p build/tidy "$@"; }

git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
cmake --preset tidy >/dev/null
cmake --build --preset tidy --target ablate_generated
git ls-files 'base/*.cc' 'proto/*.cc' 'storage/*.cc' 'server/*.cc' 'client/*.cc' | tidy
git ls-files 'tests/*.cc' | tidy --checks='-*,clang-diagnostic-*,misc-unused-using-decls'
