# Functions that install PyTorch's wheel into a Python environment, for deploy/setup.sh and ablate-torch. Source
# phases.sh before it, and call begin_log.
# shellcheck shell=bash

torch_version=2.13.0

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

# install_torch VENV KIND BUILD: installs torch. BUILD:
#   cpu   the CPU build if the package index offers it; otherwise PyPI's, slim for KIND programs, whole for KIND tests
#   slim  PyPI's build, which is for CUDA, without CUDA's libraries: our programs compute on the cores with it, but
#         Python can't import it
#   cuda  PyPI's build
install_torch() {
  local venv=$1 kind=$2 build=$3 began=$SECONDS status
  local headers=cccl,crt  # without them the plugin for devices isn't built
  if [ "$build" = cpu ]; then
    printf 'Installing the CPU build of PyTorch %s (200 MB to download) ... ' "$torch_version"
    logged pip_install "$venv" "torch==$torch_version+cpu"
    if [ "$status" -eq 0 ]; then
      duration $((SECONDS - began))
      return
    fi
    echo "not offered by the package index"
    build=slim
    [ "$kind" != tests ] || build=cuda
  fi
  if [ "$build" = cuda ]; then
    phase "Installing PyPI's PyTorch $torch_version with CUDA (2.7 GB to download, 4.4 GB on disk)" \
      install_cuda_torch "$venv" "$headers"
  else
    # Two small packages (13 of 2,200 MB) suffice to load torch on a machine without a device.
    phase "Installing PyPI's PyTorch $torch_version without CUDA's libraries (540 MB to download)" \
      install_cuda_torch "$venv" "$headers,cudart,cupti" --no-deps
    echo "  Python can't import this build. For users' programs with PyTorch: ablate up --environment default=PYTHON"
  fi
}
