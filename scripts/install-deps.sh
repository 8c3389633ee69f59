#!/usr/bin/env bash
# Installs the Debian packages that farfault builds with, if any is missing. Needs root only when something is missing.
set -euo pipefail
packages=(gcc make cmake ninja-build pkg-config re2c clang llvm libclang-rt-dev
          libzstd-dev liblz4-dev libfyaml-dev libjansson-dev libcmocka-dev python3 git ca-certificates)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0
echo "farfault: installing ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "farfault: root (or sudo) is needed to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
