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
usage "unrecognized option '--memroy'" run --memroy copy ./program
usage "no memory manager 'cpoy': did you mean 'copy'?" run --memory cpoy ./program
usage "no memory manager 'xyzzy': there are copy" run --memory copy,xyzzy ./program
usage "memory manager 'copy' is named twice" run --memory copy,demand,copy ./program
usage "memory manager 'copy' is named twice" run --memory copy --memory copy ./program
usage "no memory manager 'COPY': did you mean 'copy'?" run --memory COPY ./program
usage "--memory none stands alone" run --memory none,copy ./program
usage "--memory none stands alone" run --memory copy --memory none ./program
usage "--memory is longer than" run --memory "$(printf 'copy,%.0s' {1..200})" ./program
usage "--memory is empty" run --memory= ./program
usage "--memory names no manager" run --memory , ./program
usage "no machine 'h20': did you mean 'h200'?" run --machine h20 ./program
usage "is not a size" run --gpu-memory lots ./program
usage "'100' is less than one page of 64.00 KiB" run --gpu-memory 100 ./program
usage "--gpu-memory is empty" run --gpu-memory "" ./program
usage "is not a size" run --gpu-memory -1 ./program
usage "is not a size" run --gpu-memory 99999999999T ./program
usage "'0%' is nothing" run --gpu-memory 0% ./program
usage "did you mean 'density'" run --prefetch densty ./program
usage "no-such.so" run --evict ./no-such.so ./program
usage "is not a power of two from 128 to 2M" run --unit 5000 ./program
usage "is neither 'serial' nor 'overlapped'" run --write-back never ./program
usage "a machine has no value 'fault_uss': did you mean 'fault_us'?" run --set fault_uss=5 ./program
usage "--set is empty" run --set "" ./program
usage "'fault_us' is not NAME=VALUE" run --set fault_us ./program
usage "out of range" run --set fault_us=-5 ./program
usage "--threads: '0' is not a number from 1" run --threads 0 ./program
usage "--threads: 'x' is not a number" run --threads x ./program
usage "--threads: '99999' is not a number" run --threads 99999 ./program
usage "--max-instructions: '1e6' is not a number from 1 to 9223372036854775807 (also 500k, 20M, 3G)" run --max-instructions 1e6 ./program
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
