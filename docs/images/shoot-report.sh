#!/usr/bin/env bash
# Takes report.png, the picture of the README: the top of a report page, by headless Chromium.
# Usage: docs/images/shoot-report.sh REPORT.html
set -euo pipefail
[ $# -eq 1 ] || { echo "usage: docs/images/shoot-report.sh REPORT.html" >&2; exit 64; }
page=$(realpath "$1")
chromium --headless --no-sandbox --hide-scrollbars --force-device-scale-factor=1.25 \
  --window-size=1000,960 --screenshot="$(realpath "$(dirname "$0")")/report.png" "file://$page" 2>/dev/null
