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

torch_version=2.13.0

packages=(
  bubblewrap build-essential ca-certificates ccache cmake fonts-liberation git ninja-build pkg-config python3 python3-venv
  libabsl-dev libboost-math-dev libcli11-dev libfmt-dev libgmock-dev libgrpc++-dev libgtest-dev
  libhwy-dev libpcre2-dev libprotobuf-dev librsvg2-dev libspdlog-dev libsqlite3-dev libssl-dev libyaml-cpp-dev
  nlohmann-json3-dev protobuf-compiler protobuf-compiler-grpc
)

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

# Returns true if this machine has an NVIDIA device with its driver.
nvidia_device() { [ -e /dev/nvidiactl ] || [ -e /proc/driver/nvidia/version ]; }

# pip_install VENV ARGUMENT...
pip_install() { "$1/bin/pip" install --quiet --disable-pip-version-check "${@:2}"; }

# cuda_packages VENV PARTS: prints the requirement for these parts of the CUDA toolkit, in the version of PyPI's torch.
# Prints nothing for the CPU build.
cuda_packages() {
  "$1/bin/python" - "$2" <<'PYTHON'
import importlib.metadata, re, sys
for required in importlib.metadata.requires("torch") or []:
    toolkit = re.match(r"cuda-toolkit\[[^]]*\]\s*(==[\d.]+)", required)
    if toolkit:
        print(f"cuda-toolkit[{sys.argv[1]}]" + toolkit[1])
PYTHON
}

# install_cuda_torch VENV PARTS [OPTION...]: installs PyPI's torch, by these options of pip, and parts of the toolkit.
install_cuda_torch() {
  local venv=$1 packages
  pip_install "$venv" "${@:3}" "torch===$torch_version"
  packages=$(cuda_packages "$venv" "$2")
  [ -z "$packages" ] || pip_install "$venv" "$packages"
}

# install_torch VENV KIND: installs the CPU build if an index offers it and there is no NVIDIA device, else PyPI's own,
# which is the CUDA build. KIND programs needs LibTorch and the libraries that it loads; KIND tests needs everything
# that torch requires, because Python imports it.
install_torch() {
  local venv=$1 kind=$2 dependencies=() began=$SECONDS status
  local headers=cccl,crt  # without them the plugin for devices isn't built
  [ "$kind" = tests ] || dependencies=(--no-deps)
  if [ "$venv" = build/venv ] && ! nvidia_device; then
    printf 'Installing the CPU build of PyTorch %s (200 MB to download) ... ' "$torch_version"
    logged pip_install "$venv" "${dependencies[@]}" "torch==$torch_version+cpu"
    if [ "$status" -eq 0 ]; then
      duration $((SECONDS - began))
      return
    fi
    echo "not offered by the package index"
  fi
  if [ "$kind" = tests ] || nvidia_device; then
    phase "Installing PyPI's PyTorch $torch_version with CUDA (2.7 GB to download, 4.4 GB on disk)" \
      install_cuda_torch "$venv" "$headers"
  else
    # Two small packages (13 of 2,200 MB) suffice to load torch on a machine without a device.
    phase "Installing PyPI's PyTorch $torch_version without CUDA's libraries (540 MB to download)" \
      install_cuda_torch "$venv" "$headers,cudart,cupti" --no-deps
  fi
}

# install_python VENV KIND: fills the environment unless its stamp says that it is complete.
install_python() {
  local venv=$1 kind=$2 files=(-r deploy/requirements.txt) wanted
  [ "$kind" = tests ] && files+=(-r tests/requirements.txt)
  wanted="torch $torch_version, NVIDIA device: $(nvidia_device && echo yes || echo no)
$(cat deploy/requirements.txt)"
  local complete="$wanted
$(cat tests/requirements.txt)"
  [ "$kind" = tests ] && wanted=$complete
  case "$(cat "$venv/.installed" 2>/dev/null)" in "$wanted" | "$complete") return ;; esac
  mkdir -p "$(dirname "$venv")"
  [ -x "$venv/bin/pip" ] || phase "Creating the Python environment $venv" python3 -m venv "$venv"
  rm -f "$venv/.installed"
  install_torch "$venv" "$kind"
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
venv=build/venv kind=tests preset=release folder=build targets=() text="Compiling the programs and the tests (up to 25 minutes the first time)"
case "${1:-}" in
  '') kind=programs targets=("${programs[@]}") text="Compiling the programs (up to 12 minutes the first time)" ;;
  --tests) ;;
  --cuda)
    venv=build/cuda/venv kind=programs preset=cuda folder=build/cuda targets=("${programs[@]}")
    text="Compiling the programs (up to 12 minutes the first time)"
    ;;
  --all) packages+=(clang clang-format clang-tidy) ;;
  *) echo "usage: deploy/setup.sh [--tests|--cuda|--all]" >&2; exit 64 ;;
esac
install_packages
install_python "$venv" "$kind"
# Ninja itself notices what changes after the first configuration.
[ -f "$folder/build.ninja" ] || phase "Configuring the build" configure "$preset" "$folder"
compile "$text" "$folder" "${targets[@]}"
