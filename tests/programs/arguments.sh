#!/usr/bin/env bash
# Wrong arguments: refused before anything runs, with the word that is wrong, what was meant, and status 64.
source "$(dirname "$0")/common.sh"

cat >program <<'X'
#!/bin/sh
touch ran
X
chmod +x program
usage() { # usage EXPECTED ARGUMENTS...
  local expected=$1
  shift
  run "$farfault" "$@"
  expect_status 64
  expect_no_out
  expect_err "$expected"
  expect test ! -e ran
}
usage "which program?" run
usage "which program?" run --
usage "the program's name is empty" run ""
usage "the program's name is empty" run -- "" x
usage "no option '--memroy': did you mean '--memory'?" run --memroy copy ./program
usage "no option '--memroy': did you mean '--memory'?" run --gpu-memory 4G -v --memroy=copy ./program
usage "no option '--wiide': did you mean '--wide'?" report run.ffr --wiide
usage "unrecognized option '--xyzzyxyz'" run --xyzzyxyz copy ./program
usage "no memory manager 'cpoy': did you mean 'copy'?" run --memory cpoy ./program
usage "no memory manager 'xyzzy': there are copy" run --memory copy,xyzzy ./program
usage "memory manager 'copy' is named twice" run --memory copy,demand,copy ./program
usage "memory manager 'copy' is named twice" run --memory copy --memory copy ./program
usage "no memory manager 'COPY': did you mean 'copy'?" run --memory COPY ./program
usage "--memory none stands alone" run --memory none,copy ./program
usage "--memory none stands alone" run --memory copy --memory none ./program
usage "--memory is longer than" run --memory "$(printf 'copy,%.0s' {1..600})" ./program
usage "--memory is empty" run --memory= ./program
usage "--memory names no manager" run --memory , ./program
usage "no machine 'h20': did you mean 'h200'?" run --machine h20 ./program
usage "or a percentage" run --gpu-memory lots ./program
usage "'100' is less than one page of 64.00 KiB" run --gpu-memory 100 ./program
usage "--gpu-memory is empty" run --gpu-memory "" ./program
usage "is not a size" run --gpu-memory -1 ./program
usage "is not a size" run --gpu-memory 99999999999T ./program
usage "'0%' is nothing" run --gpu-memory 0% ./program
usage "did you mean 'density'" run --prefetch densty ./program
usage "no-such.so" run --evict ./no-such.so ./program
usage "is not a power of two from 128 to 2M" run --unit 5000 ./program
usage "is neither 'keep' nor 'flush'" run --l2 cold ./program
usage "is neither 'serial' nor 'overlapped'" run --write-back never ./program
usage "HIGH is less than LOW" run --watermark 10%:5% ./program
usage "at most half" run --watermark 60% ./program
usage "is nothing" run --watermark 0 ./program
usage "--faults: 'blok' is no way of handling far-faults: there are block, replay[:N], batch[:N]" run --faults blok ./program
usage "'block:2' is no way" run --faults block:2 ./program
usage "--faults: fault_mshrs: 0 is out of range: 1 to" run --faults replay:0 ./program
usage "'replay:': no number follows the colon" run --faults replay: ./program
usage "--page: '8K' is none of the pages that a TLB maps" run --page 8K ./program
usage "is not GB/s, as 32 or 32:16" run --link a=b ./program
usage "--link: link_h2d_gbs: 'fast' is not a number" run --link fast ./program
usage "--link: '32:' is not GB/s" run --link 32: ./program
usage "--link: link_d2h_gbs: 0 is out of range" run --link 32:0 ./program
usage "'prefech' is neither a choice nor a value of the machine: did you mean 'prefetch'?" run --memory replay+prefech=tbn ./program
usage "did you mean 'link_h2d_gbs'?" run --memory replay+link_h2d_gb=5 ./program
usage "replay+fault_us=-5: fault_us: -5 is out of range" run --memory copy,replay+fault_us=-5 ./program
usage "'' is not NAME=VALUE" run --memory replay+ ./program
usage "'unit' is given twice" run --memory replay+unit=4K+unit=4K ./program
usage "'fault_us' is given twice" run --memory replay+fault_us=4+fault_us=4 ./program
usage "'prefetch' says nothing to copy, which does not page" run --memory copy+prefetch=tbn ./program
usage "memory manager 'replay+fault_us=5' is named twice" run --memory replay+fault_us=5,replay,replay+fault_us=5 ./program
usage "far-faults on partial pages are not served in batches" run --memory partial-single+faults=batch ./program
usage "far-faults on partial pages are not served in batches" run --memory replay,partial-single --faults batch ./program
usage "a unit of 128 bytes: it must be a power of two from 4096" run --memory tbn+unit=128 ./program
usage "a unit of 128 bytes: it must be a power of two from 4096" run --memory tbn --unit 128 ./program
usage "did you mean 'density'" run --memory uvm+prefetch=densty ./program
usage "a machine has no value 'fault_uss': did you mean 'fault_us'?" run --set fault_uss=5 ./program
usage "--set is empty" run --set "" ./program
usage "'fault_us' is not NAME=VALUE" run --set fault_us ./program
usage "out of range" run --set fault_us=-5 ./program
usage "--threads: '0' is not a number from 1" run --threads 0 ./program
usage "--threads: 'x' is not a number" run --threads x ./program
usage "--threads: '99999' is not a number" run --threads 99999 ./program
usage "--max-instructions: '1e6' is not a number from 1 to 9223372036854775807 (also 500k, 20M, 3G)" run --max-instructions 1e6 ./program
usage "--bind-sms: '9-3' is not a range of SMs, as 0-9" run --bind-sms 9-3 ./program
usage "--max-instructions: '-5' is not a number" run --max-instructions -5 ./program
usage "--max-instructions: '99999999999G' is not a number" run --max-instructions 99999999999G ./program
usage "--machine is longer than" run --machine "$(printf 'x%.0s' {1..300})" ./program
usage "-o: the file's name is empty" run -o "" ./program
usage "--csv: the file's name is empty" run --csv "" ./program
usage "--json -: write /dev/stdout" run --json - ./program
usage "./program: is the program: the report would take its place" run -o ./program ./program
usage "program: is the program" run --csv program ./program
cp "$source/machines/gtx480.yaml" mine.yaml
usage "mine.yaml: is the machine's file" run --machine mine.yaml --json "$work/mine.yaml" ./program
usage "./a: is named twice: CSV and JSON need a file each" run -o a --csv ./a ./program
touch a
ln -s a link
usage "a: is named twice" run --json "$work/link" --csv a ./program
rm a link
usage "no command ''" ""
usage "no option '--memory' here: options go behind the command" --memory copy ./program
usage "no command 'RUN': did you mean 'run'?" RUN ./program
usage "which list?" list
usage "no list 'Machines': did you mean 'machines'?" list Machines
usage "no list ''" list ""
usage "no list 'machine': did you mean 'machines'?" list machine
usage "one list at a time" list machines managers
usage "which file?" disasm
usage "which file?" report
usage "the file's name is empty" report ""
usage "--csv: the file's name is empty" report --csv "" a
usage "the file's name is empty" disasm ""
usage "the function's name is empty" disasm a ""
usage "one function at a time" disasm a b c
usage "one file at a time" report a b
finish
