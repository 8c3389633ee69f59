#!/usr/bin/env bash
# What the host touched does not depend on the kernel moving pages to other frames meanwhile (memory compaction).
# farfault SOURCE FIXTURES: as the other whole-program tests; hosttouch is the workload next to them.
source "$(dirname "$0")/common.sh"
