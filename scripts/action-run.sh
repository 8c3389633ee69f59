#!/usr/bin/env bash
# The second step of action.yml: `farfault run` of FARFAULT_ACTION_COMMAND, or `farfault sim` of FARFAULT_ACTION_RECORDING, with the conditions in
# FARFAULT_ACTION_FAIL_IF, one per line. Leaves junit.xml and run.ffr in FARFAULT_ACTION_RESULTS, and their names in GITHUB_OUTPUT.
# Inputs come by the environment and are never a part of a script's text. The exit status is farfault's.
set -euo pipefail
command=${FARFAULT_ACTION_COMMAND:-} recording=${FARFAULT_ACTION_RECORDING:-} results=${FARFAULT_ACTION_RESULTS:-farfault-results}
if [[ -z $command && -z $recording ]] || [[ -n $command && -n $recording ]]; then
  echo "farfault: the action takes either a command or a recording" >&2
  exit 64
fi
mkdir -p "$results"
options=(-o "$results/run.ffr" --junit "$results/junit.xml")
[[ -z ${FARFAULT_ACTION_MEMORY:-} ]] || options+=(--memory "$FARFAULT_ACTION_MEMORY")
[[ -z ${FARFAULT_ACTION_MACHINE:-} ]] || options+=(--machine "$FARFAULT_ACTION_MACHINE")
[[ -z ${FARFAULT_ACTION_BASELINE:-} ]] || options+=(--baseline "$FARFAULT_ACTION_BASELINE")
while IFS= read -r line; do
  [[ -z ${line//[[:space:]]/} ]] || options+=(--fail-if "$line")
done <<<"${FARFAULT_ACTION_FAIL_IF:-}"
while IFS= read -r line; do
  [[ -z ${line//[[:space:]]/} ]] || options+=("$line")
done <<<"${FARFAULT_ACTION_OPTIONS:-}"
if [[ -n ${GITHUB_OUTPUT:-} ]]; then
  { echo "junit=$results/junit.xml"; echo "run=$results/run.ffr"; } >>"$GITHUB_OUTPUT"
fi
if [[ -n $recording ]]; then exec farfault sim "${options[@]}" -- "$recording"; fi
exec farfault run "${options[@]}" -- bash -c "$command"
