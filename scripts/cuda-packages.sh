#!/usr/bin/env bash
# cuda-packages.sh BUILD PACKAGE[==VERSION]...: packages of NVIDIA's from PyPI, for tests that need what only NVIDIA has.
# They go into one folder, BUILD/cuda/PACKAGE[==VERSION] of the first, whose name is printed. What was installed once stays: it is used again
# without a network. A package without a version is the newest one on the day it was installed.
# Exit status: 77 if it cannot be had (the last line on stderr says what is missing), 64 wrong arguments.
set -uo pipefail
if [[ $# -lt 2 ]]; then
  sed -n '2,5s/^# //p' "$0" >&2
  exit 64
fi
mkdir -p "$1/cuda" || exit 1
kept=$(cd "$1/cuda" && pwd -P) || exit 1
shift
folder=$kept/$1
list=$folder/farfault-packages # written last: the folder is complete
if [[ $(cat "$list" 2>/dev/null) == "$*" ]]; then
  echo "$folder"
  exit
fi

missing() {
  echo "cuda-packages: $*" >&2
  exit 77
}
python3 -m pip --version >/dev/null 2>&1 || missing "missing: pip (python3 -m pip), which would install $*"
new=$(mktemp -d "$kept/new.XXXXXX") || exit 1 # next to it: renamed when complete, so that two tests may install at once
trap 'rm -rf "$new"' EXIT
# --no-deps: what is named and nothing else. PIP_USER=0: a user's settings may say --user, which does not go with --target.
if ! PIP_USER=0 python3 -m pip install --quiet --disable-pip-version-check --no-input --retries 1 --timeout 15 --only-binary :all: --no-deps \
  --target "$new/folder" "$@" >"$new/log" 2>&1 </dev/null; then
  tail -3 "$new/log" >&2
  missing "missing: $*: pip cannot install it from PyPI"
fi
echo "$*" >"$new/folder/farfault-packages"
if ! mv -T "$new/folder" "$folder" 2>/dev/null; then # there is one: another test's, or an old one
  [[ $(cat "$list" 2>/dev/null) == "$*" ]] || { rm -rf "$folder" && mv -T "$new/folder" "$folder"; } || exit 1
fi
echo "$folder"
