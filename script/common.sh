# shellcheck shell=bash
# Sourced by the other scripts: runs them from the project's root, whatever folder they are called from, and answers
# --help with the comment that a script begins with.
set -euo pipefail
if [[ -n ${Torch_DIR:-} ]]; then Torch_DIR=$(realpath "$Torch_DIR") && export Torch_DIR; fi
CDPATH='' cd -- "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '%s\n' "$*" >&2; }
if [[ ${1:-} == -h || ${1:-} == --help ]]; then
  awk 'NR > 1 && !/^#/ {exit} NR > 1 {sub(/^# ?/, ""); print}' "script/$(basename "$0")"
  exit
fi
