# SPDX-License-Identifier: Apache-2.0
"""check_opinfo.py [--details FILE] [--samples N] [--seconds S] [--as-installed] [--begin N] [--end N] [NAME...]: PyTorch's own samples of its operators
(OpInfo, which its tests use), on the GPU against the CPU, in float32: results, and gradients of the first sample.

As PyTorch's test_compare_cpu does, results are compared after `output_process_fn_grad` with a tolerance of 1e-3, and what its decorators skip is
skipped. Operators with random results are left out. Samples run in a child that is forked before CUDA starts: what ends it (a missing kernel, an
illegal address, an abort) costs the rest of its operator, and a new child goes on with the next one. With --as-installed, for a run without folders
of kernels, a missing kernel costs its sample only.

Prints a line per operator; FILE gets a line per sample: operator, sample or gradient, outcome, why. The last lines on stderr count."""
import argparse
import collections
import ctypes
import os
import re
import signal
import sys
import tempfile
import time
import warnings

warnings.filterwarnings("ignore")

import torch

from opinfo import RANDOM, TOLERANCE, gradients, is_missing, name_of, op_db, plain, result, skipped

ENDED = ["missing", "error"]  # outcomes after which the child's context is of no use
MISSING = re.compile(r"of \S+ \(([^)]*\.cu)\) holds machine code only|the kernel (\S+) is in no folder")
# What PyTorch refuses on a GPU, before anything runs.
REFUSED = re.compile("Could not run '|not supported on CUDA|expected .* to be on cpu|not implemented for|should be on the same device|"
                     "must be (located )?on the CPU|only supports? .*CPU")


def ignored():
    """The error of a launch that PyTorch did not look at, 0 if there is none; it is cleared."""
    return ctypes.CDLL(f"libcudart.so.{torch.version.cuda.split('.')[0]}").cudaGetLastError()


def compare(function, op, sample):
    """What is said of one sample: outcome and reason; None: there is nothing to compare."""
    try:
        start = time.time()
        right = function(op, sample, "cpu")
        if right is None:
            return None
        if time.time() - start > 5:
            return "skipped", "it takes more than 5 s on the CPU"
    except Exception as error:  # the sample is for a GPU only, or asks for an error
        return "skipped", f"on the CPU: {type(error).__name__}: {error}"
    try:
        ours = function(op, sample, "cuda")
        torch.cuda.synchronize()
        if ignored():
            return "missing", "a kernel whose error PyTorch does not look at"
        if function is result:
            ours, right = ours[1], right[1]
        torch.testing.assert_close(plain(ours), plain(right), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True, check_stride=False)
        return "pass", ""
    except AssertionError as error:
        return "differs", str(error)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        ignored()
        if is_missing(text):
            return "missing", text
        return "refused" if REFUSED.search(text) else "error", text


def run_operator(op, each, limit, say):
    """Whether the child can go on after it. Backward comes last, as it needs the most kernels."""
    first, number = None, 0
    if skipped(op):
        say("skipped", "samples", "PyTorch's own comparison with the CPU leaves it out")
        return True
    for number, sample in enumerate(op.sample_inputs("cpu", torch.float32)):
        if number == each:
            break
        first = first or sample
        signal.alarm(limit)
        say("begin", f"sample {number}", "")
        found = compare(result, op, sample)
        signal.alarm(0)
        if found:
            say(found[0], f"sample {number}", found[1])
            if found[0] in ENDED:
                return False
    if not first or not op.supports_autograd or torch.float32 not in op.supported_backward_dtypes("cuda"):
        return True
    sample = next(iter(op.sample_inputs("cpu", torch.float32, requires_grad=True)))
    signal.alarm(limit)
    say("begin", "gradient", "")
    found = compare(gradients, op, sample)
    signal.alarm(0)
    if found:
        say(found[0], "gradient", found[1])
    return not found or found[0] not in ENDED


def child(ops, first, last, records, options):
    """Runs operators until one spoils the context."""
    def say(outcome, what, why):
        why = " ".join(why.split())[:400]
        records.write(f"{number}\t{what}\t{outcome}\t{why}\n")
        records.flush()

    for number in range(first, last):
        try:
            torch.manual_seed(1)
            good = run_operator(ops[number], options.samples, options.seconds, say)
        except Exception as error:  # of the samples' making
            say("skipped", "samples", f"{type(error).__name__}: {error}")
            good = True
        say("end", "", "")
        if not good:
            break
    os._exit(0)


def missing_of(errors):
    """What the virtual GPU said it lacks: source files, or the kernel."""
    found = [file or kernel for file, kernel in MISSING.findall(errors)]
    files = [one for one in found if one.endswith(".cu")]
    return ", ".join(dict.fromkeys(files or found))


def outcomes(ops, options, tell):
    """Calls tell(number, what, outcome, why) for everything, and tell(number, None, seconds) after an operator."""
    number, last = options.begin, min(options.end, len(ops))
    while number < last:
        with tempfile.TemporaryFile("w+") as records, tempfile.TemporaryFile("w+") as errors:
            pid = os.fork()
            if not pid:
                os.dup2(errors.fileno(), 2)
                child(ops, number, last, records, options)
            status = os.waitpid(pid, 0)[1]
            errors.seek(0)
            text = errors.read()
            sys.stderr.write(text)
            records.seek(0)
            open_sample = None
            for line in records:
                number_text, what, outcome, why = line.rstrip("\n").split("\t", 3)
                number = int(number_text)
                if outcome == "begin":
                    open_sample = what
                    continue
                if outcome != "end":
                    tell(number, what, outcome, missing_of(text) if outcome == "missing" and not options.as_installed else why)
                open_sample = None
            if status and open_sample:
                lacks, by = missing_of(text) if "is in no folder" in text else "", os.WTERMSIG(status)
                slow = by == signal.SIGALRM
                tell(number, open_sample, "slow" if slow else "missing" if lacks else "error", lacks or f"ended by signal {by}: {text[-300:]}")
            number += 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--details")
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--as-installed", action="store_true")
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=1 << 30)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.as_installed:
        ENDED.remove("missing")
    ops = [op for op in op_db if torch.float32 in op.dtypes and not RANDOM.search(op.name)]
    if options.names:
        ops = [op for op in ops if op.name in options.names or name_of(op) in options.names]
    details = open(options.details, "w") if options.details else None
    counts, operators, found = collections.defaultdict(collections.Counter), collections.defaultdict(set), collections.defaultdict(dict)

    def tell(number, what, outcome, why):
        name = name_of(ops[number])
        if details:
            details.write(f"{name}\t{what}\t{outcome}\t{' '.join(why.split())[:400]}\n")
            details.flush()
        kind = "gradients" if what == "gradient" else "samples"
        counts[kind][outcome] += 1
        operators[kind].add(number)
        found[number].setdefault(outcome, f"{what}: {' '.join(why.split())[:160]}")

    start = time.time()
    outcomes(ops, options, tell)
    for number in sorted(found):
        wrong = [f"{outcome}: {found[number][outcome]}" for outcome in ("differs", "error", "slow") if outcome in found[number]]
        unrun = [f"not run: {outcome}: {found[number][outcome]}" for outcome in ("missing", "refused", "skipped") if outcome in found[number]]
        print(name_of(ops[number]), (wrong or unrun or ["pass"])[0], 0, sep="\t")
    for what, count in counts.items():
        print(f"{what}: {sum(count.values())} of {len(operators[what])} operators: {dict(count)}", file=sys.stderr)
    print(f"{time.time() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
