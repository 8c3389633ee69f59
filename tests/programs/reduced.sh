#!/usr/bin/env bash
# A reduction of a stream in managed memory is the device's: the host touches the page when it reads, and not before. $3: where `reduced` is.
source "$(dirname "$0")/common.sh"
run "$farfault" record --machine v100 -o reduced.fft "$3/reduced"
expect_status 0
expect grep -qx 7 out
run "$farfault" trace dump reduced.fft
expect_status 0
expect test "$(grep -c 'host touch.*read 0x' out)" -eq 1
expect test "$(grep -c 'host touch.*write' out)" -eq 0
finish
