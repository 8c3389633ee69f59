#!/usr/bin/env bash
# The microbenchmarks of `farfault validate` on a real GPU: latencies, streams, caches, copies, mixes of reads and writes, few SMs, many pages. A step of
# gpu-check.sh.
#
#   scripts/gpu-micro.sh [-q] [-d virtual|cuda|PATH] [-t SECONDS] BUILD FILE.csv
#
# A row `name,value,unit,min,max,command` for each quantity that a command prints, the median, least and most of three runs of it (-q: one run of a few small
# ones). After SECONDS (90) it begins nothing new and says how many commands are left out: they stand in the order of their worth. -d: the driver (cuda);
# with `virtual` the programs run on a V100 of farfault's. Exit status: 1 if a program failed or there is no row, else 0.
set -uo pipefail
export LC_ALL=C
driver=cuda seconds=90 quick=""
usage() { sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 64; }
while getopts qd:t: option; do
  case $option in
  q) quick=yes ;;
  d) driver=$OPTARG ;;
  t) seconds=$OPTARG ;;
  *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -eq 2 ]] || usage
build=$1 csv=$2
runs=3 runner=()
[[ -z $quick ]] || runs=1
case $driver in
virtual) runner=("$build/bin/farfault" run --machine v100 --memory copy --) ;;
cuda) ;;
*) export LD_LIBRARY_PATH=$(dirname "$driver")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} ;;
esac

# The commands. What a virtual GPU measures in one round takes so many here that no launch and no clock matters.
commands() {
  local n r w place
  if [[ $quick ]]; then
    printf '%s\n' "mix 1 1 8 0 8" "sms 0 1 2048 1" "pages 64 2048 1024" "chase 16 1000"
    return
  fi
  for r in "1 0" "0 1" "1 1" "2 1" "3 1" "1 2" "1 3"; do echo "mix $r 8 0 1024 0 7"; done
  for r in "1 1" "2 2" "4 4"; do echo "mix $r 8 0 1024 1 7"; done
  for r in "1 0" "0 1" "1 1" "3 1"; do
    for n in 1 2 4 8; do echo "mix $r 8 $n 1024 0 7"; done # so many blocks of 256 threads per SM
  done
  for n in 1 16 33 66 132; do
    for r in 0 1 2; do echo "sms $r $n 8448 $((8 * n < 20 ? 20 : 8 * n)) 7"; done
  done
  for n in 1 16 66 132; do
    for r in 0 1 2; do echo "sms $r $n 1048576 1 5"; done
  done
  for n in 64 256 1024; do echo "stream $n 2 1024 15"; done
  for n in 16 126 257 1026 8298 32987 64550 138947; do echo "chase $n"; done
  for n in 16 64 256 1024 4096 8192; do echo "pages $n"; done
  echo "lattice 256"
  for n in 2048 8192 25600 33792 48128 63488 256000; do echo "l2cache $n 300"; done
  for n in 16 64 128 280 984 7584; do echo "cache $n $((400000 / n))"; done
  for n in 0 1 2; do echo "managed $n 8192 5"; done
  echo "managed 3 24576 10"
  for n in 4 64 1024 16384; do echo "copies $n 20"; done
  for n in "0 1" "0 3" "0 8" "0 15" "1 1" "2 1"; do echo "strides $n 8192"; done
  for n in "4096 128" "256017 128" "4196976 128" "4196976 32"; do echo "small $n 1000"; done
  for r in "1 0" "1 1"; do
    for n in 4 16; do echo "mix $r $n 0 1024 0 7"; done # bytes of a thread
  done
}

# measure COMMAND: what it prints, as QUANTITY VALUE UNIT, of each of its runs.
measure() {
  local words i
  read -r -a words <<<"$1"
  for ((i = 0; i < runs; i++)); do
    "${runner[@]}" "$build/workloads/micro/${words[0]}" "${words[@]:1}" 2>"$log" || { tail -3 "$log" >&2; return 1; }
  done | awk 'NF == 4 && $2 == "=" { print $1, $3, $4 }'
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0 left=0
mapfile -t list < <(commands)
: >"$csv"
for command in "${list[@]}"; do
  if ((SECONDS >= seconds)); then
    left=$((left + 1))
    continue
  fi
  if ! printed=$(measure "$command"); then
    echo "gpu-micro: $command: failed" >&2
    failed=$((failed + 1))
    continue
  fi
  sort -k1,1 -k2,2g <<<"$printed" | awk -v command="$command" '
    function row() { if (n) printf "\"micro: %s: %s\",%s,%s,%s,%s,workloads/micro/%s\n", command, quantity, value[int((n + 1) / 2)], unit, value[1], value[n], command }
    $1 != quantity { row(); n = 0; quantity = $1; unit = $3 }
    { value[++n] = $2 }
    END { row() }' >>"$csv"
done
((left == 0)) || echo "gpu-micro: no time was left for $left of ${#list[@]} commands"
[[ $failed -eq 0 && -s $csv ]]
