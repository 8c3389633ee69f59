#!/usr/bin/env bash
# Every row of the interpreter's tables (exec/instructions/*.def) is stated by a case, or named in forms_without_case.txt: a form that is new
# there needs a case, and a name whose form has got one is struck out.
#   tests/conformance/forms.sh build/tests/conformance_runner tests/conformance [--write]
set -u
runner=$1
cd "$2" || exit 1
mapfile -t folders < <(find . -mindepth 2 -name '*.ptx' -not -path './wrong/*' -printf '%h\n' | sort -u)
rest=$("$runner" --forms "${folders[@]}") || { echo "$rest"; exit 1; }
if [ "${3:-}" = --write ]; then
  printf '%s\n' "$rest" >forms_without_case.txt
else
  diff forms_without_case.txt <(printf '%s\n' "$rest")
fi
