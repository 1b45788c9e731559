#!/usr/bin/env bash
# Checks the formatting, runs clang-tidy over our own sources, and clang's warnings (with its thread-safety analysis) over the tests too.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# tidy [OPTION...]: checks the files that stdin names.
tidy() { xargs -P "$(nproc)" -n 2 clang-tidy --quiet -p build/tidy "$@"; }

git ls-files '*.cc' '*.h' | xargs clang-format --dry-run --Werror
cmake --preset tidy >/dev/null
cmake --build --preset tidy --target ablate_generated
# Without programs that this preset doesn't compile: they need CUDA, a GPU or libFuzzer.
git ls-files 'base/*.cc' 'proto/*.cc' 'storage/*.cc' 'server/*.cc' 'client/*.cc' ':!server/engine/torch/cuda' | tidy
git ls-files 'tests/*.cc' ':!tests/fuzz' ':!tests/gpu' | tidy --checks='-*,clang-diagnostic-*,misc-unused-using-decls'
