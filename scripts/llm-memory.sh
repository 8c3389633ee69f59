#!/usr/bin/env bash
# Tokens per simulated second of the workload llm against GPU memory, under several managers: records the program once for each phase, simulates
# every point by `farfault sweep`, and prints a table.
#
#   scripts/llm-memory.sh [-b BUILD] [-s normal|small] [-j JOBS] [-M MACHINE] [-o FILE.csv]
#
# -M: rtx3090 if it is not given. ats is among the managers where the machine's GPU reaches all memory of the host by lines.
# decode: tokens made, prompts being short. prefill: tokens of prompts, one token being made of each. A share of GPU memory is of what the
# program allocates with all weights in it, so all rows of a phase have the same bytes. `by-hand` is the program's own streaming under `copy`:
# as many layers stay resident as fit that share, and the others are copied in for each step. "-": it does not fit, or the manager needs more.
set -euo pipefail

managers=(copy uvm auto segments segments+evict=lifo:2M zero-copy) # one more is one word more
shares=(25 50 75 100)
machine=rtx3090
build=build size=normal jobs=1 csv=
usage() { sed -n '2,10s/^# \{0,1\}//p' "$0" >&2; exit 64; }
while getopts b:s:j:M:o: option; do
  case $option in
  b) build=$OPTARG ;;
  s) size=$OPTARG ;;
  j) jobs=$OPTARG ;;
  M) machine=$OPTARG ;;
  o) csv=$OPTARG ;;
  *) usage ;;
  esac
done
[[ $# -lt $OPTIND ]] || usage
case $size in # layers, heads, vocabulary, requests, slots, prompt, tokens
normal) layers=6 decode="6 8 1024 4 4 12 8" prefill="6 8 1024 3 3 24 1" ;;
small) layers=3 decode="3 4 256 2 2 6 2" prefill="3 4 256 1 1 12 1" ;;
*) usage ;;
esac
build=$(realpath "$build")
farfault=$build/bin/farfault
values=$("$farfault" machine show "$machine")
if grep -q ' system_memory *2 ' <<<"$values"; then managers+=(ats); fi
if [[ -n $csv ]]; then : >>"$csv"; csv=$(realpath "$csv"); fi # before all the work: can it be written?

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

record() { # record FILE ARGUMENTS...
  "$farfault" record --threads 1 --machine "$machine" -o "$1.fft" -- "$build/workloads/llm" "${@:2}" >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }
}
sweep() { # a point may be refused, which is a result; anything else is an error
  local status=0
  "$farfault" sweep "$1.yaml" -j "$jobs" >"$1.log" 2>&1 || status=$?
  [[ $status -eq 0 || ($status -eq 1 && -f $1.db) ]] || { cat "$1.log" >&2; exit 1; }
  "$farfault" results "$1.db" --where "state = 'failed'" --columns point --csv failed.csv >/dev/null 2>&1
  [[ $(wc -l <failed.csv) -le 1 ]] || { cat "$1.log" >&2; exit 1; }
}
results() { "$farfault" results "$1.db" --columns memory,gpu_memory,state,time_us,h2d_bytes,d2h_bytes,faults --csv - 2>/dev/null | tail -n +2; }
words() { local IFS=,; echo "[${*// /}]"; }

study() { # study PHASE TOKENS-PATTERN ARGUMENTS...: lines of the CSV
  local phase=$1 pattern=$2 tokens whole least layer share bytes resident
  shift 2
  record "$phase" "$@" "$layers" 0
  tokens=$(sed -n "s/^llm: $pattern/\1/p" "$phase.log")
  printf 'trace: %s.fft\nmachine: %s\nmemory: %s\ngpu-memory: %s\n' "$phase" "$machine" "$(words "${managers[@]}")" "$(words "${shares[@]/%/%}")" >"$phase.yaml"
  sweep "$phase"
  results "$phase" >rows
  # By hand: with no layer resident the program has two buffers of a layer's size instead of all layers.
  alone "$phase"
  record hand0 "$@" 0 0
  alone hand0
  whole=$(footprint <"$phase.csv") least=$(footprint <hand0.csv)
  layer=$(((whole - least) / (layers - 2)))
  for share in "${shares[@]}"; do
    bytes=$((whole * share / 100))
    resident=$(((bytes - least) / layer))
    if [[ $share -eq 100 || $bytes -lt $least ]]; then echo "by-hand,$share%,refused,,,,"
      continue
    fi
    record "hand$resident" "$@" "$resident" 0
    alone "hand$resident"
    [[ $(footprint <"hand$resident.csv") -le $bytes ]] || { echo "llm-memory.sh: $resident resident layers do not fit $share %" >&2; exit 1; }
    awk -F, -v share="$share%" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i } NR == 2 { print "by-hand," share ",done," $at["time_us"] "," $at["h2d_bytes"] "," $at["d2h_bytes"] "," $at["faults"] }' "hand$resident.csv"
  done >>rows
  awk -F, -v phase="$phase" -v tokens="$tokens" '{ printf "%s,%s,%s,%s", phase, $1, $2, $3
    if ($3 == "done") printf ",%.6g,%s,%s,%s,%s\n", tokens * 1e6 / $4, $4, $5, $6, $7; else print ",,,,," }' rows
}
alone() { "$farfault" sim --memory copy --machine "$machine" --csv "$1.csv" "$1.fft" >"$1.log" 2>&1 || { cat "$1.log" >&2; exit 1; }; }
footprint() { awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "footprint_bytes") at = i } NR == 2 { print $at }'; }

{
  echo phase,memory,gpu_memory,state,tokens_per_second,time_us,h2d_bytes,d2h_bytes,faults
  study decode '\([0-9]*\) tokens behind .*' $decode
  study prefill '[0-9]* tokens behind \([0-9]*\) of prompts.*' $prefill
} >all.csv
awk -F, -v shares="${shares[*]}" '
  NR > 1 { if (!($1 in seen)) phases[++p] = $1; seen[$1] = 1; if (!($2 in known)) names[++n] = $2; known[$2] = 1; value[$1, $2, $3] = $5 }
  END {
    count = split(shares, share, " ")
    for (i = 1; i <= p; i++) {
      printf "%s%-24s", (i > 1 ? "\n" : ""), phases[i]
      for (k = 1; k <= count; k++) printf " %9s", share[k] "%"
      print ""
      for (j = 1; j <= n; j++) {
        printf "%-24s", names[j]
        for (k = 1; k <= count; k++) { v = value[phases[i], names[j], share[k] "%"]; if (v == "") printf " %9s", "-"; else printf " %9.0f", v }
        print ""
      }
    }
  }' all.csv
if [[ -n $csv ]]; then cp all.csv "$csv.tmp-$$" && mv "$csv.tmp-$$" "$csv"; fi
