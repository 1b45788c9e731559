#!/usr/bin/env bash
# Installs what is missing and builds: Debian packages, Python environment in build/venv, programs in build/bin.
# Usage: deploy/setup.sh [--tests|--cuda|--all]
#   --tests  also what the tests need, and the test programs
#   --cuda   the programs with PyPI's own torch wheel, the CUDA build, in build/cuda
#   --all    as --tests, with clang and its tools
# Safe to run again at any time.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

torch_version=2.13.0

packages=(
  build-essential ca-certificates ccache cmake fonts-liberation git ninja-build pkg-config python3 python3-venv
  libabsl-dev libboost-math-dev libcli11-dev libfmt-dev libgmock-dev libgrpc++-dev libgtest-dev
  libhwy-dev libprotobuf-dev librsvg2-dev libspdlog-dev libsqlite3-dev libssl-dev libyaml-cpp-dev nlohmann-json3-dev
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

# Whether this machine has an NVIDIA device with its driver.
nvidia_device() { [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ]; }

# Prints what a torch of the CUDA build needs to be linked and loaded where no device is asked of it: two small ones of the
# NVIDIA packages that it requires, 13 of 2,200 MB. Nothing for the CPU build.
cuda_libraries() {
  "$1/bin/python" - <<'PYTHON'
import importlib.metadata, re
for required in importlib.metadata.requires("torch") or []:
    toolkit = re.match(r"cuda-toolkit\[[^]]*\]\s*(==[\d.]+)", required)
    if toolkit:
        print("cuda-toolkit[cudart,cupti]" + toolkit[1])
PYTHON
}

# install_torch VENV WHAT: the CPU build where an index offers it and no NVIDIA device is there, else PyPI's own, which is the CUDA
# build. For WHAT = programs only LibTorch and what it loads; for tests all that torch requires, so that Python can import it.
install_torch() {
  local venv=$1 what=$2 pip=("$1/bin/pip" install --quiet --disable-pip-version-check)
  local all=()
  [ "$what" = tests ] || all=(--no-deps)
  if [ "$venv" = build/venv ] && ! nvidia_device &&
    "${pip[@]}" "${all[@]}" "torch==$torch_version+cpu" >/dev/null 2>&1; then
    echo "Installed the CPU build of torch $torch_version (200 MB)"
  elif [ "$what" = tests ] || nvidia_device; then
    echo "Installing PyPI's torch $torch_version, the CUDA build, with NVIDIA's libraries (2.7 GB to download, 4.4 GB on disk; once)"
    "${pip[@]}" "torch===$torch_version"
  else
    echo "Installing PyPI's torch $torch_version, the CUDA build without the libraries of the device that is not here (540 MB to download; once)"
    "${pip[@]}" --no-deps "torch===$torch_version"
    local libraries
    libraries=$(cuda_libraries "$venv")
    [ -z "$libraries" ] || "${pip[@]}" "$libraries"
  fi
}

# install_python VENV WHAT: fills the environment unless its stamp says that all of it is there.
install_python() {
  local venv=$1 what=$2 files=(-r deploy/requirements.txt) wanted
  [ "$what" = tests ] && files+=(-r tests/requirements.txt)
  wanted="torch $torch_version, NVIDIA device: $(nvidia_device && echo yes || echo no)
$(cat deploy/requirements.txt)"
  local complete="$wanted
$(cat tests/requirements.txt)"
  [ "$what" = tests ] && wanted=$complete
  case "$(cat "$venv/.installed" 2>/dev/null)" in "$wanted" | "$complete") return ;; esac
  mkdir -p "$(dirname "$venv")"
  [ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
  rm -f "$venv/.installed"
  install_torch "$venv" "$what"
  "$venv/bin/pip" install --quiet --disable-pip-version-check "${files[@]}"
  printf '%s' "$wanted" >"$venv/.installed"
}

# build PRESET FOLDER [TARGET...]: all targets where none is named.
build() {
  local preset=$1 folder=$2
  shift 2
  # What changes later, Ninja notices by itself.
  [ -f "$folder/build.ninja" ] || cmake --preset "$preset" >"$folder/configure.log" 2>&1 ||
    { cat "$folder/configure.log"; rm -f "$folder/build.ninja"; return 1; }
  echo "Building (the first time takes some minutes)"
  cmake --build "$folder" ${1:+--target "$@"}
}

programs=(ablate ablated ablate-worker)
venv=build/venv what=tests preset=release folder=build targets=()
case "${1:-}" in
  '') what=programs targets=("${programs[@]}") ;;
  --tests) ;;
  --cuda) venv=build/cuda/venv what=programs preset=cuda folder=build/cuda targets=("${programs[@]}") ;;
  --all) packages+=(clang clang-format clang-tidy) ;;
  *) echo "usage: deploy/setup.sh [--tests|--cuda|--all]" >&2; exit 64 ;;
esac
install_packages
install_python "$venv" "$what"
build "$preset" "$folder" "${targets[@]}"
