#!/usr/bin/env bash
# demo.sh BUILD: the main job on a bundled program: one execution, four memory managers, one table.
set -euo pipefail
build=$1
farfault=$build/bin/farfault
program=$build/workloads/vectoradd
[[ -x $program ]] || { echo "demo: $program was not built (it needs clang)" >&2; exit 1; }
show() {
  printf '\n$ %s\n' "$*"
  "$@"
}
show "$farfault" run --memory copy,demand,replay,ideal "$program" 1000000
show "$farfault" run --memory copy,demand,replay,ideal --machine gtx480 "$build/workloads/bfs" 65536 8
printf '\nYour own program: nvcc saxpy.cu -o saxpy && %s run ./saxpy 1000000\n' "$farfault"
