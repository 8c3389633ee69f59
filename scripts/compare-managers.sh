#!/bin/sh
# Runs the bundled workloads under several managers, at several shares of the memory that they allocate, and prints for
# each run the times and, of the manager named last, the ratio to the better of the others; then geometric means and
# worst cases.
#
#   scripts/compare-managers.sh [-b BUILD] [-M MACHINE] [-m MANAGERS] [-g SHARES] [-e] [-s SIZES] [WORKLOAD...]
#
# BUILD: build. MACHINE: gtx480. MANAGERS: uvm,tbn,auto. SHARES: 100,75,50 (per cent, the same bytes for all
# managers). -e: rounded up to whole blocks of 2 MiB and at least two, so that none that hands memory out in blocks is
# left out. SIZES: a file with a line for each workload, its name and arguments; by default those below, footprints of
# about 8 MB. If the managers together take longer than LIMIT seconds (300), each is given as long alone;
# one that takes longer still, or cannot run with so little memory, is shown as a dash, and its workload left out of the
# means.
set -eu

build=build machine=gtx480 managers=uvm,tbn,auto shares=100,75,50 sizes="" equal=""
while getopts b:M:m:g:s:e option; do
  case $option in
  b) build=$OPTARG ;;
  M) machine=$OPTARG ;;
  m) managers=$OPTARG ;;
  g) shares=$OPTARG ;;
  s) sizes=$OPTARG ;;
  e) equal=yes ;;
  *) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
  esac
done
shift $((OPTIND - 1))

default_sizes() {
  cat <<'END'
backprop 55552 1
bfs 131072 8
cfd 256 236 2
coulomb 1414 1414 16 1
fdtd 816 816 4
histogram 8388608 64
hotspot 816 816 4
kmeans 200000 8 8 2
laplace 100 100 100 2
libor 32768 20
matmul 768
neural 580
nw 1024
pathfinder 19600 100 20
reduce 2097152 128
scan 1048576
sgemm 816 816 816
sort 21
spmv 65536 16
srad 576 576 2
stencil 128 128 61 4
stringmatch 50000 4000 25
vectoradd 700000
weather 11834 28 2
END
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -n "$sizes" ]; then cat "$sizes"; else default_sizes; fi >"$folder/sizes"

wanted() { # is the workload among those that were asked for?
  [ $# -eq 1 ] && return 0
  name=$1
  shift
  for each in "$@"; do [ "$each" = "$name" ] && return 0; done
  return 1
}

simulate() { # simulate MANAGERS MEMORY: runs $name with $arguments; a line for each manager: name, share, manager, time, footprint
  # shellcheck disable=SC2086 # the arguments are words
  timeout "${LIMIT:-300}" "$build/bin/farfault" run --machine "$machine" --memory "$1" --gpu-memory "$2" \
    --csv "$folder/run.csv" "$build/workloads/$name" $arguments >"$folder/log" 2>&1 </dev/null || return 1
  awk -F, -v name="$name" -v share="$share" '
    NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
    { printf "%s,%s,%s,%s,%s\n", name, share, $1, $(column["error"]) != "" ? "failed" : $(column["time_us"]), $(column["footprint_bytes"]) }' "$folder/run.csv"
}

while read -r name arguments; do
  wanted "$name" "$@" || continue
  share=100 footprint=0
  [ -z "$equal" ] || footprint=$(simulate ideal 100% | cut -d, -f5)
  for share in $(echo "$shares" | tr , ' '); do
    memory=$share%
    [ -z "$equal" ] || memory=$(awk -v bytes="${footprint:-0}" -v share="$share" \
      'BEGIN { blocks = bytes * share / 100 / 2097152; n = int(blocks); n += n < blocks; if (n < 2) n = 2; print n * 2 "M" }')
    if simulate "$managers" "$memory" >"$folder/lines"; then
      cat "$folder/lines"
    else
      for manager in $(echo "$managers" | tr , ' '); do simulate "$manager" "$memory" || echo "$name,$share,$manager,failed,0"; done
    fi
  done
done <"$folder/sizes" | awk -F, -v managers="$managers" '
  BEGIN { count = split(managers, manager, ","); own = manager[count] }
  function flush(  i, best, ratio) {
    if (!key) return
    printf "%-12s %4s%% %6.1f MB", name, share, bytes / 1e6
    for (i = 1; i <= count; i++) printf time[manager[i]] == "failed" ? " %12s" : " %12.0f", time[manager[i]] == "failed" ? "-" : time[manager[i]]
    if (failed) { printf "\n"; failures++ }
    else {
      best = 0
      for (i = 1; i < count; i++) if (!best || time[manager[i]] < best) best = time[manager[i]]
      if (best) {
        ratio = time[own] / best
        printf " %7.2f", ratio
        runs[share]++
        if (!(share in order)) { order[share] = ++shares_seen; shown[shares_seen] = share }
        log_best[share] += log(ratio)
        for (i = 1; i < count; i++) log_other[share, i] += log(time[own] / time[manager[i]])
        if (ratio > worst[share]) { worst[share] = ratio; worst_name[share] = name }
      }
      printf "\n"
    }
    split("", time)
    failed = bytes = 0
  }
  {
    if (!key) {
      printf "%-12s %5s %9s", "workload", "mem", "footprint"
      for (i = 1; i <= count; i++) printf " %9s us", manager[i]
      printf " %s / better\n", own
    }
    if (key != $1 "," $2) { flush(); key = $1 "," $2; name = $1; share = $2 }
    time[$3] = $4
    if ($4 == "failed") failed = 1
    else bytes = $5
  }
  END {
    flush()
    for (s = 1; s <= shares_seen; s++) {
      share = shown[s]
      printf "%s%%: %d runs, geometric means: %s over", share, runs[share], own
      for (i = 1; i < count; i++) printf " %s %.3f,", manager[i], exp(log_other[share, i] / runs[share])
      printf " the better %.3f; worst %.2f (%s)\n", exp(log_best[share] / runs[share]), worst[share], worst_name[share]
    }
    exit failures > 0
  }'
