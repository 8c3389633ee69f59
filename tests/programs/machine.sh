#!/usr/bin/env bash
# farfault machine: show, diff, new, and the schema of machine files: it is in machines/, all machines conform to it, and what reading refuses it refuses.
# $3: yaml_flat.
source "$(dirname "$0")/common.sh"
flat=$3

# ---- show, diff ----
run "$farfault" machine show h100
expect_status 0
expect grep -qE '^core +sm_count +132 +XLA h100_sxm$' out
expect grep -qE '^l2 +l2_bytes +50M +bytes +XLA h100_sxm: 52428800 bytes$' out
expect test "$(grep -c '^link  *' out)" -gt 2
run "$farfault" machine show h100 --json -
expect python3 -c 'import json; found = json.load(open("out")); one = [v for v in found["values"] if v["name"] == "l2_bytes"]
assert one == [{"group": "l2", "name": "l2_bytes", "value": "50M", "unit": "bytes", "source": "XLA h100_sxm: 52428800 bytes"}], one'
run "$farfault" machine show -v gtx480
expect grep -qE '^core +tensor_cycles +- ' out
run "$farfault" machine diff a100 h100
expect_status 1
expect grep -qE '^sm_count +108 +132 +1.22x' out
expect test "$(grep -c '^schedulers' out)" -eq 0
run "$farfault" machine diff h100 h100
expect_status 0
expect_out "the same values"
run "$farfault" machine diff a100 h100 --json -
expect_status 1
expect python3 -c 'import json; assert [v["values"] for v in json.load(open("out")) if v["name"] == "l2_bytes"] == [["40M", "50M"]]'

# ---- new: changed is what was asked for, and nothing else ----
run "$farfault" machine new --like h100 --set l2_bytes=60M,core.sm_count=120 --set "name=Half \"an\" H100" -o mine.yaml
expect_status 0
expect_no_out
diff "$source/machines/h100.yaml" mine.yaml >changes
expect test "$(grep -c '^>' changes)" -eq 4 # and the title
expect grep -qF '>   l2_bytes: {value: 60M, source: "set by hand; was 50M (XLA h100_sxm: 52428800 bytes)"}' changes
expect test "$(grep -c '^#' mine.yaml)" -eq "$(grep -c '^#' "$source/machines/h100.yaml")"
run "$farfault" machine diff h100 mine.yaml
expect_status 1
expect test "$(grep -cE '^(name|sm_count|l2_bytes) ' out)" -eq 4
expect test "$(wc -l <out)" -eq 4
for machine in "$source"/machines/*.yaml; do # every one can be changed; those that lack a value get a line, or a group
  run "$farfault" machine new --like "$machine" --set hoists_loads=0,memory_bytes=3G,copy_engines=1,address_map=interleave,side_masks_none=1 -o new.yaml
  expect_status 64
  run "$farfault" machine new --like "$machine" --set hoists_loads=0,memory_bytes=3G,l2_write_through=1 --source 'a "test" \ é' --title "a title" -o new.yaml
  expect_status 0
  run "$farfault" machine diff "$machine" new.yaml
  expect grep -qE '^memory_bytes ' out
  run "$farfault" machine show new.yaml
  expect grep -qE '^l2 +l2_write_through +1 +a "test" \\ é$' out
  expect_out "a title"
done
printf 'title: t\n' >none.yaml
sed 's/^  memory_bytes: .*/  memory_bytes:\n    value: "80G" # a comment\n    source: >-\n      two\n      lines/' "$source/machines/h100.yaml" >block.yaml
run "$farfault" machine new --like block.yaml --set sm_count=3 -o new.yaml
expect_status 0
expect grep -qF '# a comment' new.yaml
run "$farfault" machine new --like block.yaml --set memory_bytes=3G -o new2.yaml
expect_status 2 # rather than a wrong file
expect_err "block.yaml: cannot be edited"
expect test ! -e new2.yaml
run "$farfault" machine new --like h100 --set stack_count=4,stack_warps=8,stack_tx_gbs=80,stack_rx_gbs=80,stack_cross_gbs=40,stack_vaults=16,stack_gbs=160,stack_busy_cycles=4 -o stacks.yaml
expect_status 0
expect test "$(grep -c '^stacks:' stacks.yaml)" -eq 1 # a group that was not there

# ---- refused ----
refused() { # refused STATUS MESSAGE ARGUMENT...
  run "$farfault" machine "${@:3}"
  expect_status "$1"
  expect_err "$2"
}
refused 64 "what? show, diff, new or schema"
refused 64 "did you mean 'show'?" shwo h100
refused 64 "which machine?" show
refused 64 "which two machines?" diff h100
refused 64 "like which machine?" new
refused 64 "are of \`farfault machine new\`" show h100 --set sm_count=3
refused 64 "did you mean 'sm_count'?" new --like h100 --set sm_cout=3
refused 64 "is in group 'core'" new --like h100 --set l2.sm_count=3
refused 64 "sm_count is set twice" new --like h100 --set sm_count=3,sm_count=4
refused 64 "write NAME=VALUE" new --like h100 --set sm_count
refused 64 "out of range" new --like h100 --set sm_count=0
refused 64 "is a table" new --like h100 --set link_table=1
refused 2 "cannot open" show ./nowhere.yaml
refused 2 "none.yaml" show ./none.yaml
cp "$source/machines/h100.yaml" own.yaml
refused 64 "is the machine that it would be like" new --like ./own.yaml --set sm_count=3 -o own.yaml
expect cmp own.yaml "$source/machines/h100.yaml"
refused 1 "nowhere/x.yaml" new --like h100 -o nowhere/x.yaml

# ---- like another machine ----
mkdir boards
sed 's/^  sm_count: {value: [0-9]*/  sm_count: {value: 77/' "$source/machines/a40.yaml" >boards/board.yaml
printf 'title: mine\nlike: boards/board.yaml\nl2:\n  l2_bytes: {value: 3M, source: "a guess"}\nlink:\n  link_table: {value: [[4K, 1], [1M, 2]], source: "a guess"}\n' >mine.yaml
run "$farfault" machine diff boards/board.yaml mine.yaml --json -
expect_status 1
expect test "$(grep -c '"group"' out)" -eq 2
expect test "$(grep -cE '"name": "(l2_bytes|link_table)"' out)" -eq 2
run "$farfault" machine show mine.yaml
expect_status 0
expect_out "mine.yaml, like boards/board.yaml"
expect grep -qE '^core +sm_count +77 ' out
expect grep -qE '^l2 +l2_bytes +3M +bytes +a guess$' out
expect grep -qE '^link +link_table +\[\[4K, 1\], \[1M, 2\]\]' out
run "$farfault" machine new --like mine.yaml --set l2_bytes=6M,sm_count=70 -o boards/new.yaml # from another folder
expect_status 0
expect test "$(wc -l <boards/new.yaml)" -eq 9
expect grep -qF 'sm_count: {value: 70, source: "set by hand; was 77 (' boards/new.yaml
run "$farfault" machine diff mine.yaml boards/new.yaml
expect_status 1
expect test "$(grep -cE '^(l2_bytes|sm_count) ' out)" -eq 2
expect test "$(wc -l <out)" -eq 3
like() { # like MESSAGE LINE...: a machine that is like another in a way that is refused
  printf 'title: t\n' >wrong.yaml
  printf '%s\n' "${@:2}" >>wrong.yaml
  run "$farfault" machine show ./wrong.yaml
  expect_status 2
  expect_err "$1"
}
like "wrong.yaml:2:7: no machine 'v10': did you mean 'v100'?" "like: v10"
like "wrong.yaml:2:7: no file 'boards/none.yaml' beside this one" "like: boards/none.yaml"
like "wrong.yaml:3:1: 'like' is given twice" "like: v100" "like: a100"
like "wrong.yaml:2:1: 'like' is the name of a machine" "like: [v100]"
like "unknown group 'likes': did you mean 'like'?" "likes: v100"
like "wrong.yaml:2:7: a machine would be like itself: ./wrong.yaml is like ./wrong.yaml" "like: wrong.yaml"
printf 'title: other\nlike: wrong.yaml\n' >other.yaml
like "other.yaml:2:7: a machine would be like itself: ./wrong.yaml is like ./other.yaml, which is like ./wrong.yaml" "like: other.yaml"
sed 's/^  sm_count: {value: [0-9]*/  sm_count: {value: x/' "$source/machines/a40.yaml" >boards/board.yaml
like "boards/board.yaml:15:21: sm_count" "like: boards/board.yaml"
expect_err "wrong.yaml is like it"
like "wrong.yaml: " "like: a40" "core:" "  max_threads: {value: 33, source: x}"

# ---- the schema ----
run "$farfault" machine schema
expect_status 0
cp out schema.json
[[ ${FARFAULT_GOLDEN-} != write ]] || cp schema.json "$source/machines/machine.schema.json"
expect cmp schema.json "$source/machines/machine.schema.json" # FARFAULT_GOLDEN=write ctest -R programs/machine writes it
cat >conforms.py <<'END'
# conforms.py SCHEMA FLAT: whether what yaml_flat printed conforms; of JSON Schema what is in the schema, and an error for any other word of it.
import json, re, sys
KNOWN = {"$schema", "title", "description", "type", "properties", "required", "additionalProperties", "minLength", "maxLength", "minimum", "maximum", "pattern", "anyOf",
         "minItems", "maxItems", "items", "uniqueItems", "if", "else"}
def tree(lines):
    top = {}
    for line in lines:
        path, text = line.rstrip("\n").split("\t", 1)
        at = top
        *above, last = path.split(".")
        for name in above: at = at.setdefault(name, {})
        at[last] = text
    return lists(top)
def lists(node):
    if not isinstance(node, dict): return node
    made = {name: lists(value) for name, value in node.items()}
    return list(made.values()) if made and all(name.isdigit() for name in made) else made
def good(s, v):
    if set(s) - KNOWN: sys.exit(f"unknown words {set(s) - KNOWN}")
    if "anyOf" in s: return any(good(other, v) for other in s["anyOf"])
    if "if" in s and not all(name in v for name in s["if"]["required"]):
        more = s["else"]
        if not all(name in v for name in more["required"]): return False
        if not all(inner in v[name] for name, group in more["properties"].items() for inner in group["required"]): return False
    kind = s["type"]
    if kind in ("integer", "number"):
        if not isinstance(v, str) or not re.fullmatch(r"-?\d+" if kind == "integer" else r"-?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", v): return False
        return s["minimum"] <= float(v) <= s["maximum"]
    if kind == "string": return isinstance(v, str) and s.get("minLength", 0) <= len(v) <= s.get("maxLength", 1e9) and re.search(s.get("pattern", ""), v) is not None
    if kind == "object":
        return isinstance(v, dict) and all(name in v for name in s.get("required", [])) and all(name in s["properties"] and good(s["properties"][name], value) for name, value in v.items())
    if kind == "array":
        if not isinstance(v, list) or not s["minItems"] <= len(v) <= s["maxItems" if "maxItems" in s else "minItems"] and "maxItems" in s: return False
        if s.get("uniqueItems") and len(set(v)) < len(v): return False
        return all(good(s["items"][i] if isinstance(s["items"], list) else s["items"], value) for i, value in enumerate(v))
    sys.exit(f"unknown type {kind}")
sys.exit(0 if good(json.load(open(sys.argv[1])), tree(open(sys.argv[2]))) else 1)
END
conforms() {
  "$flat" "$1" >flat.tsv && python3 conforms.py schema.json flat.tsv
}
for machine in "$source"/machines/*.yaml; do expect conforms "$machine"; done
# Systems of several GPUs are the machine of one of them, and links.
for pair in v100:dgx-v100 h100:dgx-h100 a40:pcie-8; do
  run "$farfault" machine diff ${pair%:*} ${pair#*:} --json -
  expect_status 1
  expect test "$(grep -c '"group"' out)" -eq "$(grep -c '"group": "links"' out)"
  expect_out '"name": "gpus"'
done
# A machine with tiers is one without, and tiers.
run "$farfault" machine diff h100-pcie h100-nvme --json -
expect_status 1
expect test "$(grep -c '"group"' out)" -eq "$(grep -c '"group": "tiers"' out)"
expect_out '"name": "below_host"'
changed() { # changed SED: a machine that neither reading nor the schema takes
  sed "$1" "$source/machines/gm200.yaml" >changed.yaml
  expect test "$(cmp -s changed.yaml "$source/machines/gm200.yaml" && echo same)" = ""
  run "$farfault" machine show ./changed.yaml
  expect_status 2
  if conforms changed.yaml; then wrong "the schema takes $1"; else pass; fi
}
changed 's/^  sm_count: {value: [0-9]*/  sm_count: {value: 0/'
changed 's/^  sm_count: {value: [0-9]*/  sm_count: {value: 2.5/'
changed 's/^  sm_count:/  sm_cuont:/'
changed '/^  sm_count:/d'
changed 's/^title:/titel:/'
changed '/^link:/,/^$/d'
changed 's/^  memory_bytes: {value: [0-9]*/  memory_bytes: {value: x/'
changed 's/^\(  sm_count: {value: [0-9]*\),.*/\1}/'
changed 's/^  link_table: {value: \[\[4K, /  link_table: {value: [[4K, x/'
finish
