#!/usr/bin/env bash
# Installs ablate's Debian packages, and PyTorch for the worker. Usage: deploy/install.sh [FOLDER]
#   FOLDER  that has the packages [dist]
set -euo pipefail

folder=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../dist}")
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$folder"/ablate*.deb
"${as_root[@]}" ablate-torch
