#!/usr/bin/env bash
# Builds the packages: Debian's ablate-client and ablate, and the Python wheel.
# Usage: deploy/package.sh [--cuda] [FOLDER]
#   --cuda  with the plugin for GPUs, which needs PyPI's torch to build
#   FOLDER  where to write them [dist]
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")

setup=() build=build
if [ "${1:-}" = --cuda ]; then
  setup=(--cuda) build=build/cuda
  shift
fi
case "${1:-}" in
  -*) echo "usage: deploy/package.sh [--cuda] [FOLDER]" >&2; exit 64 ;;
esac
folder=$(realpath -m "${1:-$root/dist}")
cd "$root"
. deploy/phases.sh
deploy/setup.sh "${setup[@]}"
begin_log build/package.log

install_tools() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" apt-get install -y -qq --no-install-recommends dpkg-dev file patchelf
}

# Lets the program write its pages for man, and its completion for bash.
write_pages() {
  rm -rf "$build/package"
  mkdir -p "$build/package/man1"
  "$build/bin/ablate" help --man "$build/package/man1"
  gzip -9n "$build"/package/man1/*
  "$build/bin/ablate" completion bash >"$build/package/ablate.bash"
}

pack() { cpack --config "$build/CPackConfig.cmake" -B build/packages; }

wheel() {
  "$build/venv/bin/pip" wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build/packages client/python
}

{ command -v dpkg-shlibdeps && command -v file && command -v patchelf; } >/dev/null ||
  phase "Installing the tools" install_tools
rm -rf build/packages
phase "Writing the manual pages" write_pages
phase "Making the Debian packages" pack
phase "Making the Python wheel" wheel
mkdir -p "$folder"
rm -f "$folder"/ablate_*.deb "$folder"/ablate-client_*.deb "$folder"/ablate-*.whl
cp build/packages/*.deb build/packages/*.whl "$folder"
ls -sh "$folder"
