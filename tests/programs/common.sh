# Sourced by the whole-program tests: a folder of their own, and checks that count. Arguments of every test:
# $1 the program farfault, $2 the source folder.
set -uo pipefail
farfault=$1
source=$2
here=$source/tests/programs
work=$(mktemp -d)
export TMPDIR=$work/tmp
mkdir "$TMPDIR"
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export NO_COLOR=1 FARFAULT_CONFIG=none # whatever the user has chosen
export FARFAULT_PROGRESS_SECONDS=0 # nothing more is printed where a test takes long
unset FARFAULT_DEVICES FARFAULT_DRIVER_VERSION FARFAULT_MEMORY FARFAULT_MACHINE FARFAULT_SET FARFAULT_GPU_MEMORY FARFAULT_THREADS FARFAULT_EXECUTE FARFAULT_COMPILER FARFAULT_MAX_INSTRUCTIONS FARFAULT_BIND_SMS FARFAULT_PRIVATE_RUNTIMES
passed=0 failed=0 status=0
pass() { passed=$((passed + 1)); }
wrong() {
  failed=$((failed + 1))
  echo "wrong: $*"
  echo "  stdout: $(head -c 2000 out 2>/dev/null)"
  echo "  stderr: $(head -c 2000 err 2>/dev/null)"
}
# run COMMAND...: keeps its stdout in ./out, stderr in ./err, exit status in $status.
run() {
  shown="$*"
  "$@" >out 2>err </dev/null
  status=$?
}
expect_status() { if [[ $status -eq $1 ]]; then pass; else wrong "$shown: status $status, expected $1"; fi; }
expect_out() { if grep -qF -- "$1" out; then pass; else wrong "$shown: '$1' is not on stdout"; fi; }
expect_err() { if grep -qF -- "$1" err; then pass; else wrong "$shown: '$1' is not on stderr"; fi; }
expect_no_out() { if [[ ! -s out ]]; then pass; else wrong "$shown: something is on stdout"; fi; }
expect_no_err() { if [[ ! -s err ]]; then pass; else wrong "$shown: something is on stderr"; fi; }
# one_in N: of what is repeated only to see more of the same, true each Nth time where FARFAULT_FEWER is set, as by `make test`; otherwise always.
asked=0
one_in() { [[ -z ${FARFAULT_FEWER-} ]] || ((asked++ % $1 == 0)); }
# A report without its checksum: what is changed in it then is not refused for that.
unsealed() { sed -z 's/,\n  "checksum": "[0-9a-f]*"//' "$1"; }
expect() { if "$@"; then pass; else wrong "not so: $*"; fi; }
finish() {
  [[ -z $(ls -A "$TMPDIR") ]] && pass || wrong "temporary files are left: $(ls -A "$TMPDIR")"
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 && $passed -gt 1 ]]
  exit
}
