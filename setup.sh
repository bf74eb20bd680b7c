#!/usr/bin/env bash
# Sets up what the Makefile's targets need and says what it does. Running it again does nothing.
# What it installs: bubblewrap (Debian/Ubuntu packages, needs root or sudo) and a virtual environment.
set -euo pipefail
cd "$(dirname "$0")"
VENV=${VENV:-.venv}
TORCH=${PRILL_TORCH:-torch==2.13.0}

say() { printf 'setup: %s\n' "$*" >&2; }
stop() { printf 'setup: %s\n' "$*" >&2; exit 1; }

packages() {  # install Debian packages, as root or through sudo
  local run=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || stop "$* must be installed, and this is neither root nor is there sudo. Ask whoever runs the machine to 'apt-get install $*'."
    run=(sudo)
  fi
  command -v apt-get >/dev/null || stop "$* must be installed, and this is not Debian or Ubuntu. Install it with your package manager, then run this again."
  say "installing $* (apt)"
  "${run[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@" >/dev/null
}

find_python() {
  for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3; do
    if "$name" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
      command -v "$name"; return
    fi
  done
  stop "no Python from 3.11 to 3.13 found; install one, or name it with PYTHON=/path/to/python3"
}

if [ "${1:-}" != --without-bubblewrap ]; then
  command -v bwrap >/dev/null || packages bubblewrap
  bwrap --unshare-all --ro-bind / / true 2>/tmp/prill-bwrap.$$ || {
    words=$(cat /tmp/prill-bwrap.$$); rm -f /tmp/prill-bwrap.$$
    stop "bubblewrap is installed but cannot make a box here ($words). Unprivileged user namespaces may be switched off: see kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns. 'make demo SANDBOX=local' runs without isolation and marks every record so."
  }
  rm -f /tmp/prill-bwrap.$$
fi

PYTHON_FOUND=$(find_python)
STAMP="$VENV/.prill-$(cat pyproject.toml setup.sh | sha256sum | cut -c1-16)"
if [ ! -e "$STAMP" ]; then
  if [ ! -x "$VENV/bin/python" ]; then
    say "making $VENV with $PYTHON_FOUND"
    "$PYTHON_FOUND" -m venv "$VENV" 2>/dev/null || { rm -rf "$VENV"; packages python3-venv; "$PYTHON_FOUND" -m venv "$VENV"; }
  fi
  say "installing $TORCH, then prill with its extras (minutes, the first time)"
  "$VENV/bin/python" -m pip install --quiet --upgrade pip 2>&1 | grep -v '^WARNING: Location' || true
  "$VENV/bin/python" -m pip install --quiet "$TORCH" 2>&1 | grep -v '^WARNING: Location' || true
  "$VENV/bin/python" -m pip install --quiet --editable '.[cpu,train,eval,scan,dev]' 2>&1 | grep -v '^WARNING: Location' || true
  "$VENV/bin/python" -c 'import torch, transformers, trl, inspect_ai, msgspec' 2>/dev/null || stop "the installation did not finish; run '$VENV/bin/python -m pip install -e .[cpu,train,eval,scan,dev]' to see why"
  rm -f "$VENV"/.prill-*
  touch "$STAMP"
  say "ready"
fi
