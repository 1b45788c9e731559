#!/usr/bin/env bash
# Installs what is missing and builds: Debian packages, a Python environment in build/venv, programs in build/bin.
# Usage: deploy/setup.sh [--tests|--cuda|--all]
#   --tests  also what the tests need, and the test programs
#   --cuda   the programs with PyPI's own torch wheel, the CUDA build, in build/cuda
#   --all    as --tests, with clang and its tools
# Prints a line per phase; the output of apt, pip and CMake is in build/setup.log. Safe to run again at any time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. deploy/phases.sh
. deploy/torch.sh

packages=(
  bubblewrap build-essential ca-certificates ccache cmake fonts-liberation git ninja-build pkg-config python3 python3-venv
  libabsl-dev libboost-math-dev libcli11-dev libcpp-httplib-dev libfmt-dev libgmock-dev libgrpc++-dev libgtest-dev
  libhwy-dev libjs-dygraphs libpcre2-dev libprotobuf-dev librsvg2-dev libspdlog-dev libsqlite3-dev libssl-dev libyaml-cpp-dev
  nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler protobuf-compiler-grpc
)

test_packages=(chromium chromium-driver file munge patchelf slurm-client slurmctld slurmd)

apt_install() {
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

install_packages() {
  local missing=()
  for package in "${packages[@]}"; do
    dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] || phase "Installing ${#missing[@]} Debian packages" apt_install "${missing[@]}"
}

# install_python VENV KIND BUILD: fills the environment unless its stamp says that it is complete.
install_python() {
  local venv=$1 kind=$2 build=$3 files=(-r deploy/requirements.txt) wanted
  [ "$kind" = tests ] && files+=(-r tests/requirements.txt)
  wanted="torch $torch_version, $build build
$(cat deploy/requirements.txt)"
  local complete="$wanted
$(cat tests/requirements.txt)"
  [ "$kind" = tests ] && wanted=$complete
  case "$(cat "$venv/.installed" 2>/dev/null)" in "$wanted" | "$complete") return ;; esac
  mkdir -p "$(dirname "$venv")"
  [ -x "$venv/bin/pip" ] || phase "Creating the Python environment $venv" python3 -m venv "$venv"
  rm -f "$venv/.installed"
  install_torch "$venv" "$kind" "$build"
  phase "Installing the other Python packages" pip_install "$venv" "${files[@]}"
  printf '%s' "$wanted" >"$venv/.installed"
}

# configure PRESET FOLDER: writes FOLDER/build.ninja, or leaves none.
configure() {
  local status=0
  cmake --preset "$1" || status=$?
  [ "$status" -eq 0 ] || rm -f "$2/build.ninja"
  return "$status"
}

begin_log build/setup.log
programs=(ablate ablated ablate-worker)
venv=build/venv build=cpu kind=tests preset=release folder=build targets=() text="Compiling the programs and the tests (up to 25 minutes the first time)"
case "${1:-}" in
  '') kind=programs targets=("${programs[@]}") text="Compiling the programs (up to 12 minutes the first time)" ;;
  --tests) packages+=("${test_packages[@]}") ;;
  --cuda)
    venv=build/cuda/venv build=slim kind=programs preset=cuda folder=build/cuda targets=("${programs[@]}")
    text="Compiling the programs (up to 12 minutes the first time)"
    ;;
  --all) packages+=("${test_packages[@]}" clang clang-format clang-tidy) ;;
  *) echo "usage: deploy/setup.sh [--tests|--cuda|--all]" >&2; exit 64 ;;
esac
install_packages
! nvidia_device || build=cuda
install_python "$venv" "$kind" "$build"
# Ninja itself notices what changes after the first configuration.
[ -f "$folder/build.ninja" ] || phase "Configuring the build" configure "$preset" "$folder"
compile "$text" "$folder" "${targets[@]}"
