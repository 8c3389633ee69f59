#!/usr/bin/env bash
# Shell completion: bash is asked as it asks itself when TAB is pressed; fish too where it is; zsh's script is checked by zsh where it is.
# And everything there is - commands, their options - is offered.
source "$(dirname "$0")/common.sh"
PATH=$(dirname "$farfault"):$PATH

for shell in bash zsh fish; do
  run "$farfault" completion $shell
  expect_status 0
  expect_no_err
  cp out "$shell.script"
  command -v $shell >/dev/null || { echo "$shell is not here: its script is not checked"; continue; }
  run $shell -n "$shell.script"
  expect_status 0
done
run "$farfault" completion tcsh
expect_status 64
expect_err "there are bash, zsh, fish"
run "$farfault" completion
expect_status 64

load() { source ./bash.script; } # in a function, as bash-completion does it
load
touch app.fft app.ffr study.yaml other.txt policy.so
mkdir folder "folder with spaces"
# complete WORD...: what bash offers for the last word, cut as bash cuts it (COMP_WORDBREAKS has "=" and ":"), whole again.
complete_words() {
  local word rest whole=${!#} cut
  COMP_WORDS=() COMPREPLY=()
  for word in "$@"; do
    rest=$word
    while [[ $rest == *[=:]* ]]; do
      cut=${rest%%[=:]*}
      [[ $cut ]] && COMP_WORDS+=("$cut")
      COMP_WORDS+=("${rest:${#cut}:1}")
      rest=${rest:${#cut}+1}
    done
    [[ $rest || $word != *[=:] ]] && COMP_WORDS+=("$rest")
  done
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
  _farfault
  local stays=${whole%"${whole##*[=:]}"}
  printf '%s\n' "${COMPREPLY[@]/#/$stays}" | sort -u >offered
}
offers() { # offers EXPECTED... -- WORD...: exactly these
  local wanted=()
  while [[ $1 != -- ]]; do wanted+=("$1"); shift; done
  shift
  complete_words "$@"
  if [[ "$(printf '%s\n' "${wanted[@]}" | sort -u)" == "$(cat offered)" ]]; then pass; else wrong "$*: offered $(tr '\n' ' ' <offered), not ${wanted[*]}"; fi
}
includes() { # includes EXPECTED -- WORD...
  local wanted=$1
  shift 2
  complete_words "$@"
  if grep -qxF -- "$wanted" offered; then pass; else wrong "$*: no $wanted among $(tr '\n' ' ' <offered)"; fi
}

offers record report reproduce results rewrite -- farfault re
offers reproduce -- farfault help repr
offers --memory= -- farfault run --mem
offers --machine= --map= --memory= --model-threads= -- farfault sim --m
includes -m -- farfault run -
offers uvm -- farfault run --memory uv
offers --memory=uvm -- farfault run --memory=uv
offers copy,uvm -- farfault run -m copy,uv
offers uvm+evict= -- farfault run --memory uvm+ev
offers uvm+evict=lru -- farfault run --memory uvm+evict=lru
offers copy,uvm+evict=lru -- farfault run --memory copy,uvm+evict=lru
offers --memory=demand+write-back=serial -- farfault run --memory=demand+write-back=s
includes uvm+gpu-memory=50%+fault_us= -- farfault run --memory uvm+gpu-memory=50%+fault_u
# shellcheck disable=SC2046 # a word for each bundled machine
offers $(cd "$source/machines" && LC_ALL=C ls gtx*.yaml | sed 's/\.yaml$//' | LC_ALL=C sort) -- farfault run --machine gtx
offers study.yaml -- farfault run --machine stu
offers tree -- farfault sim --evict tre
offers policy.so -- farfault sim --evict pol
offers sm_count= -- farfault sim --set sm_c
offers overlapped -- farfault run --write-back o
offers app.fft -- farfault sim app
offers check cut -- farfault trace c
offers app.fft -- farfault trace check app
offers app.fft -- farfault sim --memory copy -M gtx480 app
offers app.ffr -- farfault report app
offers zheng2016 -- farfault reproduce zhe
offers normal -- farfault reproduce --size n
offers --size=small -- farfault reproduce --size=sm
offers machines managers -- farfault list ma
offers folder/ "folder with spaces/" -- farfault report app.ffr --svg fol
offers app.fft folder/ "folder with spaces/" tmp/ -- farfault sim "" # no other files
offers "" -- farfault sim app.fft app
offers zsh -- farfault completion z
offers accelsim -- farfault import acc
offers uvm -- farfault advise --now uv
offers --memory= -- farfault run --memory copy -v --mem
includes other.txt -- farfault run -m copy ./program --memory othe
FARFAULT_MACHINES=$work/machines
export FARFAULT_MACHINES
mkdir machines
cp "$source/machines/v100.yaml" machines/mine.yaml
offers mine -- farfault run -M min

# Nothing is left out, whatever commands there are.
run "$farfault" --help
for command in $(sed -n 's/^  \([a-z]*\)  .*/\1/p' out); do
  includes "$command" -- farfault "$command"
  run "$farfault" "$command" --help
  complete_words farfault "$command" --
  for option in $(grep -oE -- '^ +(-., +)?--[a-z0-9-]+' out | grep -oE -- '--[a-z0-9-]+'); do
    expect grep -qE -- "^$option=?$" offered
    for shell in zsh fish; do expect grep -qE -- "(--| -l )${option#--}\b" $shell.script; done
  done
done

if command -v fish >/dev/null; then
  export HOME=$work
  fish_offers() { # fish_offers EXPECTED LINE: among others
    run fish --no-config -c "source fish.script; complete -C '$2'"
    if cut -f1 out | grep -qxF -- "$1"; then pass; else wrong "fish: no $1 for $2"; fi
  }
  fish_offers record "farfault rec"
  fish_offers --memory "farfault run --mem"
  fish_offers uvm "farfault run --memory uv"
  fish_offers copy,uvm "farfault run --memory copy,uv"
  fish_offers uvm+evict=lru "farfault run --memory uvm+evict=l"
  fish_offers gtx480 "farfault run --machine gtx"
  fish_offers app.fft "farfault sim -m copy app"
  fish_offers dump "farfault trace d"
  fish_offers app.fft "farfault trace dump app"
fi
finish
