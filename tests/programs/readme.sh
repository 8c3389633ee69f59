#!/usr/bin/env bash
# The tables in the README and in usage.md are what their commands print: the same rows and columns, as many far-faults, times and ratios to copy
# within 5 %; and the example of offload.md and the lines of examples/README.md. $3: the folder of the workloads. FARFAULT_GOLDEN=write: the tables
# become what is printed.
source "$(dirname "$0")/common.sh"
workloads=$3

mkdir build
ln -s "$workloads" build/workloads
check_table() { # check_table FILE: of the first `farfault run` in it
  local line command manager time unit ratio rest now_time now_unit now_ratio now_rest
  line=$(grep -m1 '^\$ build/bin/farfault run ' "$1")
  command=${line#\$ build/bin/farfault }
  sed -n '/^\$ build\/bin\/farfault run /,/^```/p' "$1" | sed -n '/^memory  /,/^```/p' | grep -v '^```' >promised
  expect test "$(wc -l <promised)" -gt 4
  # shellcheck disable=SC2086 # the command is words
  run "$farfault" $command
  expect_status 0
  sed -n '/^memory  /,$p' err >printed
  if [[ ${FARFAULT_GOLDEN-} == write ]]; then
    awk -v command="\$ build/bin/farfault $command" '
      $0 == command { inside = 1 }
      inside && /^```/ { inside = shown = 0 }
      inside && /^memory  / { while ((getline line <"printed") > 0) print line; shown = 1 }
      !shown' "$1" >changed && cp changed "$1" && cp printed promised
  fi
  expect cmp <(head -1 promised | tr -s ' ') <(head -1 printed | tr -s ' ')
  expect test "$(wc -l <printed)" -eq "$(wc -l <promised)"
  while read -r manager time unit ratio rest; do
    [[ $manager == memory ]] && continue
    read -r now_time now_unit now_ratio now_rest < <(sed -n "s/^$manager  *//p" printed)
    expect test "$unit" = "$now_unit"
    expect awk -v a="$time" -v b="$now_time" 'BEGIN { exit !(a <= b * 1.05 && b <= a * 1.05) }'
    expect awk -v a="${ratio%x}" -v b="${now_ratio%x}" 'BEGIN { exit !(a <= b * 1.05 && b <= a * 1.05) }'
    # time unit ratio | kernels unit transfers unit far-faults
    expect test "$(awk '{ print $5 }' <<<"$rest")" = "$(awk '{ print $5 }' <<<"$now_rest")"
  done <promised
}
check_table "$source/README.md"
expect test "$(wc -l <"$source/README.md")" -le 80
check_table "$source/docs/usage.md"

# The table of near-data processing: speeds and traffic within 5 %, shares within 5 points.
record=$(grep -m1 '^\$ build/bin/farfault record ' "$source/docs/offload.md")
sim=$(grep -m1 '^\$ build/bin/farfault sim ' "$source/docs/offload.md")
# shellcheck disable=SC2086
run "$farfault" ${record#\$ build/bin/farfault }
expect_status 0
# shellcheck disable=SC2086
run "$farfault" ${sim#\$ build/bin/farfault } --csv stacks.csv
expect_status 0
python3 - "$source/docs/offload.md" >compared <<'END'
import csv, re, sys
units = {"KiB": 1024, "MiB": 1 << 20}
now = {(row["offload"], row["map"]): row for row in csv.DictReader(open("stacks.csv"))}
first, rows, bad = next(iter(now.values())), 0, []
for line in open(sys.argv[1]):
    cells = re.match(r"\| `(\w+)`, `(\w+)` \| ([\d.]+)x \| ([\d.]+) (\w+) \| ([\d.]+) % \| ([\d.]+) % \|", line)
    if not cells: continue
    offload, name, speed, traffic, unit, colocated, instructions = cells.groups()
    row, rows = now[offload, name], rows + 1
    near = lambda a, b: abs(a - b) <= 0.05 * max(a, b)
    if not near(float(speed), float(first["kernel_us"]) / float(row["kernel_us"])): bad.append((offload, name, "speed"))
    if not near(float(traffic) * units[unit], float(row["stacks_off_chip_bytes"])): bad.append((offload, name, "traffic"))
    if abs(float(colocated) - 100 * float(row["stacks_colocation"])) > 5: bad.append((offload, name, "colocated"))
    if abs(float(instructions) - 100 * float(row["stacks_offloaded_share"])) > 5: bad.append((offload, name, "instructions"))
print(rows, bad)
END
expect grep -qx "4 \[\]" compared

# The program that uses libfarfault, by the lines that are there, in the folder of the sources with its build folder.
sed -n '/^export PKG_CONFIG_PATH/,/^```/p' "$source/examples/README.md" | grep -v '^```' >lines.sh
expect grep -q '^cc examples/saxpy.c ' lines.sh
rm -r build
ln -s "$(dirname "$workloads")" build
ln -s "$source/examples" examples
FARFAULT_DRIVER=virtual run env -u PKG_CONFIG_PATH -u LD_LIBRARY_PATH bash -e lines.sh
expect_status 0
expect_out "0 of 100000 values are wrong"
finish
