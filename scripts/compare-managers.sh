#!/bin/sh
# Runs the bundled workloads under several managers, at several shares of the memory that they allocate, and prints for
# each run the times and, of the manager named last, the ratio to the better of the others; then geometric means and
# worst cases.
#
#   scripts/compare-managers.sh [-b BUILD] [-M MACHINE] [-m MANAGERS] [-g SHARES] [-s SIZES] [WORKLOAD...]
#
# BUILD: build. MACHINE: gtx480. MANAGERS: uvm,tbn,auto. SHARES: 100,75,50 (per cent). SIZES: a file with a line for each
# workload, its name and arguments; by default those below, footprints of about 8 MB. A run that takes longer than
# LIMIT seconds (300) is named and left out of the means.
set -eu

build=build machine=gtx480 managers=uvm,tbn,auto shares=100,75,50 sizes=
while getopts b:M:m:g:s: option; do
  case $option in
  b) build=$OPTARG ;;
  M) machine=$OPTARG ;;
  m) managers=$OPTARG ;;
  g) shares=$OPTARG ;;
  s) sizes=$OPTARG ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
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

while read -r name arguments; do
  wanted "$name" "$@" || continue
  for share in $(echo "$shares" | tr , ' '); do
    # shellcheck disable=SC2086 # the arguments are words
    if timeout "${LIMIT:-300}" "$build/bin/farfault" run --machine "$machine" --memory "$managers" --gpu-memory "$share%" \
      --csv "$folder/run.csv" "$build/workloads/$name" $arguments >"$folder/log" 2>&1 </dev/null; then
      awk -F, -v name="$name" -v share="$share" '
        NR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; next }
        { printf "%s,%s,%s,%s,%s\n", name, share, $1, $(column["time_us"]), $(column["footprint_bytes"]) }' "$folder/run.csv"
    else
      echo "$name,$share,failed,0,0"
    fi
  done
done <"$folder/sizes" | awk -F, -v managers="$managers" '
  BEGIN { count = split(managers, manager, ","); own = manager[count] }
  function flush(  i, best, ratio) {
    if (!key) return
    if ("failed" in time) { printf "%-12s %4s%%  failed, or took too long\n", name, share; failures++ }
    else {
      printf "%-12s %4s%% %6.1f MB", name, share, bytes / 1e6
      for (i = 1; i <= count; i++) printf " %12.0f", time[manager[i]]
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
  }
  {
    if (!key) {
      printf "%-12s %5s %9s", "workload", "mem", "footprint"
      for (i = 1; i <= count; i++) printf " %9s us", manager[i]
      printf " %s / better\n", own
    }
    if (key != $1 "," $2) { flush(); key = $1 "," $2; name = $1; share = $2 }
    time[$3] = $4
    bytes = $5
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
