#!/usr/bin/env bash
# torture.sh BUILD [MINUTES] [--first N] [--case N] [--kind KIND] [--jobs N] [--keep FOLDER]: random CUDA programs, signals, failing calls and full
# disks, for 30 minutes; what must hold, and what each kind does, is said in tests/torture/torture.py. Not a part of `make test`.
# What was lost is kept in BUILD/torture; --case N does a case again.
[[ $# -ge 1 && -x $1/tests/torture/torture_program ]] || { sed -n '2,4s/^# //p' "$0" >&2; exit 64; }
exec python3 "$(dirname "$0")/../tests/torture/torture.py" "$@"
