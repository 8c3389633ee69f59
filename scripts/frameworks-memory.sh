#!/usr/bin/env bash
# frameworks-memory.sh BUILD [PART...]: what memory managers make of frameworks when GPU memory is scarce. Parts: decode (tokens of a llama with
# random weights, llama.cpp), train (steps of a perceptron, CuPy); both by default; gpt, cnn (steps of a transformer and of a convolutional network,
# PyTorch; with FARFAULT_PYTORCH_KERNELS, or after scripts/frameworks-check.sh BUILD pytorch-source). Each is executed once and simulated under copy,
# uvm, auto and segments with 100, 75, 50 and 25 % of what it allocates. Prints a table in Markdown: the program's time, its far-faults and, of
# PyTorch, what the link carried in both directions. The packages are those of scripts/frameworks-check.sh, which installs them (BUILD/frameworks).
set -euo pipefail
[[ $# -ge 1 && -x $1/bin/farfault ]] || { sed -n '2,6s/^# //p' "$0" >&2; exit 64; }
build=$(cd "$1" && pwd) here=$(cd "$(dirname "$0")/.." && pwd)
shift
parts=("$@")
[[ $# -gt 0 ]] || parts=(decode train)
work=$build/frameworks
machine=h200 managers=(copy uvm auto segments) shares=(100 75 50 25)

list=
for manager in "${managers[@]}"; do
  for share in "${shares[@]}"; do list+=,$manager+gpu-memory=$share%; done
done

run_part() { # run_part PART CSV: its simulations go to the file
  local csv=$2
  rm -f "$csv"
  case $1 in
    decode)
      "$work/llm/bin/python" "$here/examples/llm/make_gguf.py" "$work/llm/decode.gguf" 4 512 --type q8_0 >&2
      cp "$here/examples/llm/chat.mjs" "$work/llm/node/"
      (cd "$work/llm/node" && "$build/bin/farfault" run --machine $machine --memory "${list:1}" --csv "$csv" \
        --cuda-libraries "$work/llm/lib/"python3*/site-packages node chat.mjs "$work/llm/decode.gguf" cuda 8) >&2
      ;;
    train)
      CUBLAS_WORKSPACE_CONFIG=:16:8 CUPY_CACHE_DIR=$work/cupy/cache "$build/bin/farfault" run --machine $machine --memory "${list:1}" --csv "$csv" \
        "$work/cupy/bin/python" "$here/tests/frameworks/train_cupy.py" >&2
      ;;
    gpt | cnn)
      CUBLAS_WORKSPACE_CONFIG=:16:8 "$build/bin/farfault" run --machine $machine --memory "${list:1}" --csv "$csv" \
        --kernels "${FARFAULT_PYTORCH_KERNELS:-$work/pytorch-source/kernels}" "$work/pytorch-source/bin/python" \
        "$here/tests/frameworks/train_pytorch.py" "$1" >&2
      ;;
    *) echo "frameworks-memory.sh: no part '$1': there are decode, train, gpt, cnn" >&2; exit 64 ;;
  esac
}

echo "| | manager |$(printf ' %s %% |' "${shares[@]}")"
echo "|---|---|$(printf -- '---|%.0s' "${shares[@]}")"
for part in "${parts[@]}"; do
  run_part "$part" "$work/memory-$part.csv"
  python3 -c '
import csv, sys

part, managers, shares = sys.argv[1], sys.argv[2].split(), sys.argv[3].split()
rows = {}
for row in csv.DictReader(sys.stdin):
    if int(row.get("launches") or 0) or row.get("error"):
        rows.setdefault(row["memory"], row)
for manager in managers:
    cells = []
    for share in shares:
        row = rows.get(f"{manager}+gpu-memory={share}%")
        if row is None or row["error"]:
            cells.append("cannot run" if row else "?")
            continue
        cell = "%.2f ms" % (int(row["time_ps"]) / 1e9)
        if int(row["faults"]):
            cell += ", %s far-faults" % row["faults"]
        if part in ("gpt", "cnn"):
            cell += ", %d MiB" % round((int(row["h2d_bytes"]) + int(row["d2h_bytes"]) + int(row["remote_bytes"])) / 2**20)
        cells.append(cell)
    print(f"| {part} | {manager} | " + " | ".join(cells) + " |")' "$part" "${managers[*]}" "${shares[*]}" <"$work/memory-$part.csv"
done
