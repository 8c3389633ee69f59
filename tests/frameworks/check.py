# SPDX-License-Identifier: Apache-2.0
"""Prints a line per check: name, outcome, seconds, separated by tabs. A check is a function that says whether a result is right."""
import sys
import time


def check(name, right):
    start = time.time()
    try:
        outcome = "pass" if right() else "WRONG"
    except Exception as error:  # whatever a framework raises is the reason
        outcome = "fail: " + " ".join(f"{type(error).__name__}: {error}".split())[:160]
    print(f"{name}\t{outcome}\t{time.time() - start:.1f}", flush=True)
    sys.stdout.flush()
