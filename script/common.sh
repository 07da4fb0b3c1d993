# Sourced by the other scripts: runs them from the project's root, whatever folder they are called from.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
say() { printf '%s\n' "$*" >&2; }
