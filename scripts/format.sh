#!/usr/bin/env bash
# format.sh [--check]: gives all C files the one form of .clang-format, 120 columns, and wraps the prose of documents at 160; --check changes nothing
# and names the files that have not got it.
# clang-format's versions differ: 14, as on Debian 12. Exit status: 1 if a file is not formatted (--check), 77 if there is no such clang-format.
set -uo pipefail
cd "$(dirname "$0")/.."
format=$(command -v clang-format-14 || command -v clang-format)
[[ -n $format && $("$format" --version) == *"version 14."* ]] || { echo "format.sh: needs clang-format 14 (Debian package clang-format)" >&2; exit 77; }
# docs/options.md and docs/validation.md are written by the program.
documents() { find . -name '*.md' ! -path './build*' ! -path './.*' ! -path '*/node_modules/*' ! -path './docs/options.md' ! -path './docs/validation.md' -print0; }
files() { find src include tests bench examples \( -name '*.c' -o -name '*.h' \) -print0; }
# Both halves of the form: clang-format does not look at how long a comment is (ReflowComments).
wrong() {
  {
    files | xargs -0 -P "$(nproc)" -n 50 "$format" --dry-run -Werror 2>&1 | sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error.*/\1/p'
    files | xargs -0 python3 scripts/wrap-comments.py --check
    documents | xargs -0 python3 scripts/wrap-documents.py --check
  } | sort -u
}
if [[ ${1:-} != --check ]]; then
  documents | xargs -0 python3 scripts/wrap-documents.py
  for _ in 1 2 3 4; do # where one breaks a line, the other may have more to do
    files | xargs -0 python3 scripts/wrap-comments.py
    files | xargs -0 -P "$(nproc)" -n 50 "$format" -i
  done
fi
left=$(wrong)
[[ -z $left ]] && exit 0
echo "$left"
echo "format.sh: these files are not formatted; scripts/format.sh does it" >&2
exit 1
