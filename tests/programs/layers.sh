#!/usr/bin/env bash
# layers.sh SOURCE: every #include between folders of src/ is one that src/layers.txt allows, and what it allows has no cycle.
set -euo pipefail
source=$1
declare -A allowed
folders=()
pairs=
while IFS=: read -r folder uses; do
  [[ $folder == \#* || -z $folder ]] && continue
  folders+=("$folder")
  allowed[$folder]=" $folder $uses "
  for use in $uses; do pairs+="$folder $use"$'\n'; done
done <"$source/src/layers.txt"

passed=0 failed=0
wrong() { echo "wrong: $*"; failed=$((failed + 1)); }

# A folder that layers.txt does not know would be checked against nothing.
for path in "$source"/src/*/; do
  folder=$(basename "$path")
  [[ -n ${allowed[$folder]:-} ]] && passed=$((passed + 1)) || wrong "src/$folder is not in src/layers.txt"
done
# tsort refuses a graph with a cycle.
if tsort <<<"$pairs" >/dev/null; then passed=$((passed + 1)); else wrong "src/layers.txt has a cycle"; fi

for folder in "${folders[@]}"; do
  [[ -d $source/src/$folder ]] || continue
  while IFS=: read -r file line include; do
    used=${include#*\"}
    used=${used%%/*}
    [[ $include != *\"*/* ]] && continue                 # a file of its own folder, named without it
    [[ $used == farfault ]] && continue                  # include/farfault: the public interface
    if [[ ${allowed[$folder]} == *" $used "* ]]; then passed=$((passed + 1)); else wrong "${file#"$source"/}:$line: $folder must not include $used/"; fi
  done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$source/src/$folder" --include='*.[ch]' --include='*.def' --include='*.re' || true)
done
echo "$passed passed, $failed failed"
[[ $failed -eq 0 && $passed -gt 50 ]]
