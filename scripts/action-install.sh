#!/usr/bin/env bash
# The first step of action.yml: installs farfault from FARFAULT_ACTION_PACKAGE (a .deb), or makes that package from the sources in
# FARFAULT_ACTION_SOURCE first. A farfault that is on the PATH already is left as it is. Debian 12, as root or with sudo.
set -euo pipefail
if command -v farfault >/dev/null; then
  farfault --version
  exit 0
fi
command -v apt-get >/dev/null || { echo "farfault: this is not Debian: run the job with \`container: debian:12\`" >&2; exit 1; }
root=()
[[ $(id -u) -eq 0 ]] || root=(sudo)
package=${FARFAULT_ACTION_PACKAGE:-}
if [[ -z $package ]]; then
  cd "$FARFAULT_ACTION_SOURCE"
  scripts/install-deps.sh
  make package
  packages=("$PWD"/build/farfault_*.deb)
  package=${packages[-1]}
fi
[[ -f $package ]] || { echo "farfault: no package '$package'" >&2; exit 1; }
"${root[@]}" apt-get update -qq
"${root[@]}" apt-get install -y -qq "$(realpath "$package")"
farfault --version
