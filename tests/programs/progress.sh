#!/usr/bin/env bash
# The progress line on a terminal to which the program writes, too: progress.py.
source "$(dirname "$0")/common.sh"
run python3 "$here/progress.py" "$farfault" "$here/pretender.sh"
expect_status 0
expect_out "progress.py: all good"
finish
