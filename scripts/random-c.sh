#!/usr/bin/env bash
# random-c.sh BUILD [--count N] [--first N] [--keep FOLDER]: random C programs of Csmith's as kernels, beside the same on the host; what they are is said in
# tests/random_c/random_c.py. Needs csmith, and nvcc (CUDA_HOME, or from PyPI into BUILD/cuda). Not a part of `make test`.
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,3s/^# //p' "$0" >&2; exit 64; }
exec python3 "$(dirname "$0")/../tests/random_c/random_c.py" "$@"
