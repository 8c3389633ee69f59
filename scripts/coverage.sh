#!/usr/bin/env bash
# coverage.sh BUILD: the branch-coverage figure of src/, from the profiles that the tests of a build with
# -DFARFAULT_COVERAGE=ON (clang) left in BUILD/profiles; per folder and in total.
set -euo pipefail
build=$1
version=$(clang --version | sed -n 's/.*clang version \([0-9]*\).*/\1/p')
tool() { command -v "$1" || command -v "$1-$version"; }
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)
find "$build/profiles" -name '*.profraw' >"$build/profiles.list"
[[ -s $build/profiles.list ]] || { echo "coverage: no profiles in $build/profiles" >&2; exit 1; }
"$profdata" merge --sparse --failure-mode=all -o "$build/all.profdata" -f "$build/profiles.list"
objects=()
while IFS= read -r file; do
  [[ $(head -c 4 "$file" | tail -c 3) != ELF ]] || objects+=(-object "$file") # a script may lie there, too
done < <(find "$build/tests" "$build/bin" "$build/lib" "$build/fuzz" -type f \( -perm -100 -o -name '*.so*' \) 2>/dev/null)
"$cov" report --show-branch-summary -instr-profile "$build/all.profdata" "${objects[@]}" --ignore-filename-regex='(tests|generated|workloads|bench)/' 2>/dev/null >"$build/coverage.txt"
# The columns are: file, regions (3), functions (3), lines (3), branches: count, missed, cover.
awk '$1 ~ /\.(c|h|re)$/ {
       path = $1; sub(/^.*src\//, "", path)
       folder = path ~ /\// ? substr(path, 1, index(path, "/") - 1) : "."
       count[folder] += $(NF - 2); missed[folder] += $(NF - 1); all += $(NF - 2); gone += $(NF - 1)
     }
     END {
       for (folder in count) if (count[folder]) printf "  %-10s %6d branches, %5.1f %% taken\n", folder, count[folder], 100 * (1 - missed[folder] / count[folder]) | "sort"
       close("sort")
       if (!all) exit 1
       printf "branch coverage: %.1f %% of %d branches in src/\n", 100 * (1 - gone / all), all
     }' "$build/coverage.txt"
