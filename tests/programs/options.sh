#!/usr/bin/env bash
# Options are one language: over the tables of all commands, an option has one letter, one kind of value and one meaning, which the manual's
# table of shared options says; and old spellings still work, with a hint.
source "$(dirname "$0")/common.sh"

run "$farfault" help --options
expect_status 0
expect_no_err
cp out options.tsv
run "$farfault" --help
for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' out); do expect grep -q "^$command	" options.tsv; done
expect grep -q "^offload profile	" options.tsv

python3 - options.tsv "$source/docs/usage.md" >found <<'END'
import collections, re, sys
SPELLINGS = {"--json", "--csv", "--html", "--svg", "--machine", "--repeat", "--now", "--json -"} # the help of an old spelling is the new one

def kind(value):
    value = value.lstrip("=")
    if value in ("FILE", "DATABASE", "FOLDER", "FILE|FOLDER"): return "path"
    return value.removesuffix(",...")

options, letters, owners = collections.defaultdict(set), collections.defaultdict(set), collections.defaultdict(set)
for line in open(sys.argv[1]):
    command, shown, letter, name, value, text = line.rstrip("\n").split("\t")
    if shown == "hidden" and (text in SPELLINGS or not value and not text): continue
    options[name].add((letter, kind(value)))
    owners[name].add(command)
    if letter: letters[letter].add(name)
for name, forms in sorted(options.items()):
    if len(forms) > 1: print(f"--{name} has several letters or kinds of values: {sorted(forms)} in {sorted(owners[name])}")
for letter, names in sorted(letters.items()):
    if len(names) > 1: print(f"-{letter} is several options: {sorted(names)}")
# What several commands share has one meaning, which the manual says once, with the same letter.
section = open(sys.argv[2]).read().split("### Options are one language")[1].split("\n**Tables")[0]
rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `-")]
said = collections.Counter(name for row in rows for name in re.findall(r"--([a-z0-9-]+)", row))
for name in sorted(options):
    if len(owners[name]) > 1 and said[name] != 1: print(f"--{name} of {sorted(owners[name])} is {said[name]} times in the manual's table")
for row in rows:
    pair = re.match(r"\| `-(\w)`, `--([a-z0-9-]+)", row)
    if pair and letters.get(pair[1], {pair[2]}) != {pair[2]}: print(f"the manual's table has -{pair[1]} for --{pair[2]}")
for name in sorted(said):
    if name not in options: print(f"the manual's table has --{name}, which there is not")
print(f"{len(options)} options looked at")
END
expect test "$(sed '$d' found)" = ""
[[ $(wc -l <found) -eq 1 ]] || cat found
expect test "$(sed -n 's/ options looked at//p' found)" -gt 60

# Old spellings.
old() { # old HINT COMMAND...: works as the new one, and says what that is
  local hint=$1
  shift
  run "$farfault" "$@"
  expect_status 0
  expect_err "farfault $1: $hint"
  cp out old.out
}
new() {
  run "$farfault" "$@"
  expect_status 0
  expect_no_err
  expect cmp old.out out
}
old "--json is now --json FILE" list machines --json
new list machines --json -
old "--json is now --json FILE" list --json machines
new list machines --json -
old "-j is now --json -" list machines -j
new list machines --json -
run "$farfault" list machines --json machines.json
expect_status 0
expect_out gtx480
expect cmp old.out machines.json
XDG_RUNTIME_DIR=$work old "-j is now --json -" shares -j
XDG_RUNTIME_DIR=$work new shares --json -
cat >kernel.ptx <<'END'
.version 6.0
.target sm_50
.address_size 64
.visible .entry nothing() { ret; }
END
run "$farfault" offload analyze --measured -m tom kernel.ptx
expect_err "-m is now -M"
run "$farfault" calibrate --repeats 0
expect_status 64
expect_err "--repeats is now --repeat"
run "$farfault" report -C rows.csv "$source/tests/unit/report/golden/sample.json"
expect_status 0
expect_err "-C is now --csv"
expect test -s rows.csv
# "-" is stdout where the help says so, and no file of that name anywhere.
report=$source/tests/unit/report/golden/sample.json
run "$farfault" report "$report" --csv -
expect_status 0
expect diff out rows.csv
expect test ! -e -
run "$farfault" bench managed --csv - --json -
expect_status 64
expect_err "--csv - and --json - both write to stdout"
for command in "report $report --html" "timeline $report -o" "calibrate --csv" "calibrate -o" "rewrite --sm-affinity kernel.ptx -o" \
  "trace cut kernel.ptx -o" "import accelsim . -o" "sweep kernel.ptx -o" "probe --target sim:gtx1080 -o"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command -
  expect_status 64
  expect_err "-: write /dev/stdout"
  # shellcheck disable=SC2086
  run "$farfault" $command ""
  expect_status 64
  expect_err "is empty"
done
run "$farfault" list machines --json ""
expect_status 64
expect_err "--json: the file's name is empty"
expect test ! -e ./-
# The name was left out, and what follows is no name.
for command in "run --json -- /bin/true" "run -o --csv rows.csv /bin/true" "sim --csv --wide x.fft" "report $report --html --json" \
  "record -o -- /bin/true" "trace cut -o --kernel=k x.fft"; do
  # shellcheck disable=SC2086 # words
  run "$farfault" $command
  expect_status 64
  expect_err "the file's name is missing (or write ./-"
done
expect test ! -e ./--
# What would have been taken for another option.
run "$farfault" run --device 1 /bin/true
expect_status 64
expect_err "--device chooses one GPU of a recording"
finish
