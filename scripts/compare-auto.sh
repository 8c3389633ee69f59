#!/bin/sh
# How near `auto` comes to the best of the managers that know no future: records each workload once, simulates all of them at several shares
# of the memory that it allocates, and prints for each workload and share the time of auto in microseconds, that over the best other one's,
# and which that was; then how many rows are within 1.1, the worst, and the geometric mean.
#
#   scripts/compare-auto.sh [-b BUILD] [-M MACHINE] [-g SHARES] [-a default|small] [-m MANAGERS] [WORKLOAD...]
#
# BUILD: build. MACHINE: gtx480. SHARES: 100,90,75,50 per cent. -a: which arguments of workloads/workloads.tsv. MANAGERS: those that auto is
# compared with; by default all that know no future. At a share all have the same bytes; managers that need more are left out, and a row in which
# auto itself is left out is "-". A simulation of another one that takes more than LIMIT seconds (25) of the processor is left out, too: it thrashes.
set -eu

build=build machine=gtx480 shares=100,90,75,50 column=3
managers=demand,replay,random,sequential,locality,sl,tbn,segments,zero-copy,copy,cuda6,gm200,gp100,uvm,partial-single,partial-multi
while getopts b:M:g:a:m: option; do
  case $option in
  b) build=$OPTARG ;;
  M) machine=$OPTARG ;;
  g) shares=$OPTARG ;;
  a) if [ "$OPTARG" = small ]; then column=4; fi ;;
  m) managers=$OPTARG ;;
  *) sed -n '2,11s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
  esac
done
shift $((OPTIND - 1))

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(dirname "$0")

simulate() { # simulate SHARE MANAGER: a line: name, share, manager, time
  limit=${LIMIT:-25}
  if [ "$2" = auto ]; then limit=unlimited; fi
  (
    ulimit -t "$limit"
    exec "$build/bin/farfault" sim --machine "$machine" --memory "$2" --gpu-memory "$1%" --csv "$folder/csv" "$folder/trace.fft"
  ) >"$folder/log" 2>&1 </dev/null || return 0
  if grep -q 'could not run it' "$folder/log"; then return 0; fi
  awk -F, -v row="$name,$1,$2" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "time_us") at = i } NR == 2 { print row "," $at }' "$folder/csv"
}

while IFS="$(printf '\t')" read -r name _ default small _; do
  [ "$name" != name ] || continue
  case " $* " in "  " | *" $name "*) ;; *) continue ;; esac
  arguments=$default
  [ "$column" = 3 ] || arguments=$small
  # shellcheck disable=SC2086 # the arguments are words
  "$build/bin/farfault" record -o "$folder/trace.fft" "$build/workloads/$name" $arguments >"$folder/log" 2>&1 </dev/null || { cat "$folder/log" >&2; exit 1; }
  for share in $(echo "$shares" | tr , ' '); do
    for manager in auto $(echo "$managers" | tr , ' '); do
      simulate "$share" "$manager"
    done
  done
done <"$here/../workloads/workloads.tsv" | awk -F, '
  function flush() {
    if (!key) return
    if (!own || !best) { printf "%-14s %3s%% %12s\n", name, share, "-"; return }
    ratio = own / best
    printf "%-14s %3s%% %12.0f %6.3f %s\n", name, share, own, ratio, who
    rows++
    within += ratio <= 1.1
    logs += log(ratio)
    if (ratio > worst) { worst = ratio; where = name " at " share "%" }
  }
  key != $1 "," $2 { flush(); key = $1 "," $2; name = $1; share = $2; own = best = 0 }
  $3 == "auto" { own = $4 }
  $3 != "auto" && (!best || $4 < best) { best = $4; who = $3 }
  END {
    flush()
    if (rows) printf "%d rows, %d within 1.1; worst %.3f (%s); geometric mean %.3f\n", rows, within, worst, where, exp(logs / rows)
    exit !rows
  }'
