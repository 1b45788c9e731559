# Functions of the scripts that install, build and test: one line per phase on the terminal, the
# output of other programs in a log file. Source it in the repository's root after
# `set -euo pipefail`, then call begin_log.
# shellcheck shell=bash

# begin_log FILE: empties the log file and uses it from now on.
begin_log() {
  log=$1
  mkdir -p "$(dirname "$log")"
  : >"$log"
}

# duration SECONDS: prints it, as "1 min 20 s".
duration() {
  if (($1 < 60)); then echo "$1 s"; else echo "$(($1 / 60)) min $(($1 % 60)) s"; fi
}

# fail_phase STATUS: prints the end of the log, or the first failed build step, and exits.
fail_phase() {
  {
    if grep -q '^FAILED: ' "$log"; then
      echo "The first error in $log:"
      sed -n '/^FAILED: /,$p' "$log" | head -n 40 | cut -c1-300
    else
      echo "The last lines of $log:"
      tail -n 20 "$log" | cut -c1-300
    fi
    echo "The whole output is in $(realpath "$log")"
  } >&2
  exit "$1"
}

# logged COMMAND...: runs it with its output in the log and sets `status`. The subshell keeps
# `set -e` inside functions, so don't call this in a condition.
logged() {
  printf '\n$ %s\n' "$*" >>"$log"
  set +e
  (set -e; "$@") >>"$log" 2>&1
  status=$?
  set -e
}

# phase TEXT COMMAND...: prints TEXT, runs the command, prints its duration. Exits if it fails.
phase() {
  local text=$1 began=$SECONDS status
  shift
  printf '%s ... ' "$text"
  logged "$@"
  if [ "$status" -ne 0 ]; then
    echo "failed after $(duration $((SECONDS - began)))"
    fail_phase "$status"
  fi
  duration $((SECONDS - began))
}

# show_tenths UNIT: reads the output of Ninja or CTest; prints a line for each tenth of its steps.
# Other lines are dropped, or printed if SHOW is set and they don't report a passed test.
show_tenths() {
  local unit=$1 show=${2:-} line tenth last=0
  local step='^\[([0-9]+)/([0-9]+)\]' test='^ *([0-9]+)/([0-9]+) Test +#[0-9]+: '
  while IFS= read -r line || [ -n "$line" ]; do
    if [[ $line =~ $step || $line =~ $test ]]; then
      tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
      if ((tenth > last)); then
        last=$tenth
        echo "  $((10 * tenth)) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]} $unit)"
      fi
      [[ $line =~ $step || $line =~ (Passed|\*\*\*Skipped) ]] && continue
    elif [[ $line =~ ^\ +Start\ +[0-9]+:\  ]]; then
      continue
    fi
    [ -z "$show" ] || printf '%s\n' "$line"
  done
}

# compile TEXT FOLDER [TARGET...]: builds the targets, all by default. Shows Ninja's status line on
# a terminal, and a line for each tenth of the steps elsewhere.
compile() {
  local text=$1 folder=$2 began=$SECONDS status=0
  shift 2
  local command=(cmake --build "$folder")
  [ $# -eq 0 ] || command+=(--target "$@")
  echo "$text"
  if [ -t 1 ]; then
    "${command[@]}" || exit $?
  else
    "${command[@]}" 2>&1 | tee -a "$log" | show_tenths steps || status=$?
    [ "$status" -eq 0 ] || fail_phase "$status"
  fi
  echo "  Built in $(duration $((SECONDS - began)))"
}
