#!/bin/sh
# Pretends to be a program on the virtual GPU: writes the results file that a session would. For the tests of run.
#   pretender.sh [COMMAND...]: runs the shell commands after that (exit 3; kill -9 $$; ...)
file=$(printf '%s' "$FARFAULT_RESULTS" | sed "s/%p/$$/")
cat >"$file" <<X
{"schema": 1, "version": "0", "command": "./pretender", "complete": ${COMPLETE:-true}, "notes": ["a note"], "runs": [
 {"memory": "copy", "machine": "h200", "complete": true, "time_ps": 2000000, "h2d_bytes": 4096, "kernels": [], "allocations": []},
 {"memory": "demand", "machine": "h200", "complete": true, "time_ps": 5000000, "faults": 7, "kernels": [], "allocations": []}],
 "host": {"wall_s": 0.1, "process": $$}}
X
for command in "$@"; do eval "$command"; done
