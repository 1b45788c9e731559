#!/usr/bin/env bash
# Installs what is missing and builds: Debian packages, Python environment in build/venv, programs in build/bin.
# Usage: deploy/setup.sh [--tests]    --tests also builds the test programs. Safe to run again at any time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

packages=(
  build-essential ca-certificates ccache cmake fonts-liberation git gnuplot-nox ninja-build pkg-config python3 python3-venv
  libabsl-dev libboost-math-dev libcli11-dev libfmt-dev libgmock-dev libgrpc++-dev libgtest-dev
  libprotobuf-dev libspdlog-dev libsqlite3-dev libssl-dev libyaml-cpp-dev nlohmann-json3-dev
  protobuf-compiler protobuf-compiler-grpc
)

install_packages() {
  local missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "Installing ${#missing[@]} Debian packages: ${missing[*]}"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

install_python() {
  local stamp=build/venv/.requirements
  cmp -s deploy/requirements.txt "$stamp" && return
  echo "Installing the torch wheel and its companions into build/venv (about a gigabyte, once)"
  mkdir -p build
  [ -x build/venv/bin/pip ] || python3 -m venv build/venv
  build/venv/bin/pip install --quiet --disable-pip-version-check -r deploy/requirements.txt
  cp deploy/requirements.txt "$stamp"
}

build() {
  [ -f build/build.ninja ] || cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; return 1; }
  echo "Building (the first time takes some minutes)"
  if [ "${1:-}" = --tests ]; then
    cmake --build build
  else
    cmake --build build --target ablate ablated ablate-worker
  fi
}

case "${1:-}" in
  ''|--tests) ;;
  *) echo "usage: deploy/setup.sh [--tests]" >&2; exit 64 ;;
esac
install_packages
install_python
build "${1:-}"
