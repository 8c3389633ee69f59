#!/usr/bin/env bash
# Installs the Debian packages that farfault builds and tests itself with, if any is missing. Needs root (or sudo) and the
# network only when something is missing.
#   --missing   only prints what is missing
#   --hint      the same as advice, after a build could not be configured
#   compiling    gcc libc6-dev make cmake ninja-build pkg-config re2c
#   libraries    libzstd-dev liblz4-dev (fat binaries, traces), libxxhash-dev (traces), liblzma-dev zlib1g-dev (compressed traces of others), libfyaml-dev (machine files), libjansson-dev (JSON),
#                libsqlite3-dev (results of sweeps)
#   compiler     llvm-14-dev (native code of kernels; farfault builds without: they are interpreted)
#   cluster      libopenmpi-dev openmpi-bin (sweeps by mpirun; farfault builds without)
#   view         libmicrohttpd-dev (the server of `farfault view`; farfault builds without)
#   workloads    clang compiles their kernels to PTX
#   report       nodejs npm bundle the page of `farfault report --html` (any npm that is there already will do)
#   docs         doxygen (the reference of libfarfault, `ninja -C build docs`)
#   package      dpkg-dev (`make package`)
#   tests        lld (links builds with checks faster; farfault builds without), mandoc (manual pages), chromium (that page), libcmocka-dev, libfftw3-dev (what the stand-in for cuFFT is compared with), sqlite3, python3 (conformance), clang with libclang-rt-dev (checks, fuzzing), llvm (coverage), clang-format
set -euo pipefail
mode=${1:-}
packages=(gcc libc6-dev make cmake ninja-build pkg-config re2c
          llvm-14-dev
          libzstd-dev liblz4-dev libxxhash-dev liblzma-dev zlib1g-dev libfyaml-dev libjansson-dev libsqlite3-dev
          libopenmpi-dev openmpi-bin libmicrohttpd-dev
          clang libclang-rt-dev lld llvm clang-format libcmocka-dev libfftw3-dev sqlite3 python3 chromium
          doxygen dpkg-dev mandoc)
command -v node >/dev/null && command -v npm >/dev/null || packages+=(nodejs npm)
if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  [[ $mode != --missing ]] || exit 0
  echo "farfault: this is not Debian: what these packages hold has to be there already: ${packages[*]}" >&2
  exit 0 # cmake says what is not
fi
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q ' ok installed$' || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0
if [[ $mode == --missing ]]; then
  echo "${missing[*]}"
  exit 0
elif [[ $mode == --hint ]]; then
  echo "farfault: something that the build needs is missing (see above); \`make deps\` installs: ${missing[*]}" >&2
  exit 0
fi
as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "farfault: root (or sudo) is needed to install: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "farfault: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq || echo "farfault: the lists of packages could not be updated; trying with those that are there" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
  { echo "farfault: could not install ${missing[*]} (see above)" >&2; exit 1; }
