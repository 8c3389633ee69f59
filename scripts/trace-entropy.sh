#!/usr/bin/env bash
# trace-entropy.sh FARFAULT TRACE: bytes per access that line numbers, lanes with sectors, and masks take if each is coded by nothing but
# how often it comes in its instruction (the entropy of order zero): what a compressor that sees no order would reach.
set -euo pipefail
"$1" trace dump --records "$2" | awk '
  $2 == "load" || $2 == "store" || $2 == "atomic" {
    accesses++
    for (i = 3; $i != "mask"; i++) if ($i == "pc") pc = $(i + 1)
    masks[pc, $(i + 1)]++; mask_total[pc]++
    for (i += 2; i <= NF; i++) { split($i, part, "/"); lines[pc, part[1]]++; shapes[pc, part[2], part[3]]++; line_total[pc]++ }
  }
  function bits(count, total,   key, part, sum) {
    for (key in count) { split(key, part, SUBSEP); sum -= count[key] * log(count[key] / total[part[1]]) / log(2) }
    return sum
  }
  END {
    a = bits(lines, line_total) / 8 / accesses; b = bits(shapes, line_total) / 8 / accesses; c = bits(masks, mask_total) / 8 / accesses
    printf "%d accesses: lines %.2f, lanes and sectors %.2f, masks %.2f, together %.2f bytes per access\n", accesses, a, b, c, a + b + c
  }'
