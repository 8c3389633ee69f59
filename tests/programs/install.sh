#!/usr/bin/env bash
# An installation works from where it is: machines, workloads and libraries are found. $3: the build folder.
source "$(dirname "$0")/common.sh"

run cmake --install "$3" --prefix "$work/place with spaces"
expect_status 0
installed="$work/place with spaces/bin/farfault"
run "$installed" list machines
expect_status 0
expect_out "$(realpath "$work/place with spaces")"
# LD_LIBRARY_PATH and LD_PRELOAD know no quotes: a link without spaces and colons stands for the folder.
run "$installed" run --memory copy --machine gtx480 /usr/bin/env
expect_status 0
expect_out "LD_LIBRARY_PATH=$(realpath "$TMPDIR")/farfault-"
if [[ -e $3/share/farfault/report.html ]]; then
  run "$installed" report "$source/tests/unit/report/golden/sample.json" --html page.html
  expect_status 0
  expect grep -q 'id="data">{"kind":"run","file":"sample.json",' page.html
fi
for place in "place with spaces" "place:with;colons"; do
  [[ -d $work/$place ]] || cp -r "$work/place with spaces" "$work/$place"
  run "$work/$place/bin/farfault" run --memory copy "$3/tests/programs/with_rpath"
  expect_status 0
  expect_out "preload: $(realpath "$TMPDIR")/farfault-"
done
mkdir "$work/tmp with spaces"
TMPDIR="$work/tmp with spaces" run "$installed" run --memory copy /usr/bin/env
expect_status 1
expect_err "set TMPDIR"
if [[ -x $work/place\ with\ spaces/lib/farfault/workloads/vectoradd ]]; then
  run "$installed" list workloads
  expect_out "place with spaces/lib/farfault/workloads/vectoradd' "
  run "$installed" run --memory copy "$work/place with spaces/lib/farfault/workloads/vectoradd" 1000
  expect_status 0
  expect_out "PASSED"
  expect_err "on h200"
fi

# Manual pages of every command and completion, as this farfault prints them; documents; the licence.
share="$work/place with spaces/share"
run "$installed" --help
for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' out); do
  run "$installed" help --man "$command"
  expect cmp -s out "$share/man/man1/farfault-$command.1"
done
expect test -s "$share/man/man1/farfault.1"
for pair in bash:bash-completion/completions/farfault zsh:zsh/site-functions/_farfault fish:fish/vendor_completions.d/farfault.fish; do
  run "$installed" completion "${pair%%:*}"
  expect cmp -s out "$share/${pair#*:}"
done
for file in README.md LICENSE docs/usage.md docs/policies.md docs/results/README.md; do expect test -s "$share/doc/farfault/$file"; done
run "$source/scripts/check-links.sh" --links "$share/doc/farfault"
[[ $status -eq 0 ]] || cat out
expect_status 0
expect_out " links, "

# A plug-in is compiled with what pkg-config says, against what is installed, and works there. It is the one of docs/policies.md.
mv "$work/place with spaces" "$work/moved"
export PKG_CONFIG_PATH=$work/moved/lib/pkgconfig
run pkg-config --modversion farfault
expect_out "$(sed -n 's/^project(farfault VERSION \([0-9.]*\).*/\1/p' "$source/CMakeLists.txt")"
sed -n '/^```c$/,/^```$/p' "$source/docs/policies.md" | sed -n '/next: the N pages/,/^```$/p' | sed '$d' >next.c
# shellcheck disable=SC2046 # several words
run "${CC:-cc}" -O2 -shared -fPIC $(pkg-config --cflags farfault) next.c -o next.so
expect_status 0
if [[ -x $work/moved/lib/farfault/workloads/vectoradd ]]; then
  run "$work/moved/bin/farfault" run --memory replay --prefetch ./next.so:64 "$work/moved/lib/farfault/workloads/vectoradd" 1000
  expect_status 0
  expect_err "on h200"
fi

# DESTDIR stands before the prefix, as packagers want it.
DESTDIR=$work/stage run cmake --install "$3" --prefix /opt/farfault
expect_status 0
expect test -x "$work/stage/opt/farfault/bin/farfault" -a -s "$work/stage/opt/farfault/share/man/man1/farfault.1"
run "$work/stage/opt/farfault/bin/farfault" list machines
expect_out "$(realpath "$work/stage")/opt/farfault/share"
finish
