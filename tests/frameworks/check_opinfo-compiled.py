# SPDX-License-Identifier: Apache-2.0
"""check_opinfo-compiled.py [--details FILE] [--dtype TYPE] [--gradients] [--samples N] [--batch N] [--begin N] [--end N] [NAME...]: PyTorch's own
samples of its operators (OpInfo), lowered by torch.compile's Inductor to Triton's kernels, on the GPU against the CPU: results, or gradients.

This is what of the operators a wheel without PTX can do. A sample is traced with Inductor's decompositions; one whose graph calls a kernel of the
wheel, as Inductor has no code of its own for it, is counted as "fallback" and not run. Those of several samples are compiled as one graph, as that
takes a fifth of the time; if that graph fails, each by itself. Tolerances are those of check_opinfo.py, and 1e-2 and 5e-2 for the types of 16 bits.

Prints a line per operator; FILE gets a line per sample: operator, sample, outcome, why. The last lines on stderr count."""
import argparse
import collections
import os
import signal
import sys
import tempfile
import warnings

warnings.filterwarnings("ignore")

import torch

from opinfo import RANDOM, TOLERANCE, from_gpu, gradients, is_missing, name_of, on, op_db, plain, result, tensors

import torch._inductor.config
from torch._inductor import lowering
from torch._inductor.decomposition import select_decomp_table
from torch.fx.experimental.proxy_tensor import make_fx

torch._inductor.config.compile_threads = 1  # in this process: a child is forked for some operators and thrown away
torch._inductor.config.triton.autotune_pointwise = False
torch._inductor.config.joint_graph_constant_folding = False  # it computes constants by kernels of the wheel
torch._inductor.config.shape_padding = False  # it makes random matrices by them, to try products with
TOLERANCES = {torch.float16: 1e-2, torch.bfloat16: 5e-2}
# What has no lowering and still needs no kernel of the wheel: libraries that have PTX, views, copies.
WITHOUT_KERNEL = ("mm", "bmm", "addmm", "baddbmm", "convolution", "convolution_backward", "_fft_c2c", "_fft_r2c", "_fft_c2r", "view", "as_strided", "alias",
                  "detach", "clone", "lift_fresh_copy")
SECONDS = 400  # for a graph, compiled and run


def rebuilder(value, leaves):
    """A function that makes the value anew from other tensors in the place of its own, which are appended to leaves."""
    if isinstance(value, torch.Tensor):
        leaves.append(value)
        return lambda given, at=len(leaves) - 1: given[at]
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        parts, kind = [rebuilder(part, leaves) for part in value], type(value)
        if hasattr(value, "_fields"):
            return lambda given: kind(*[part(given) for part in parts])
        return lambda given: kind([part(given) for part in parts])
    if isinstance(value, dict):
        named = {key: rebuilder(part, leaves) for key, part in value.items()}
        return lambda given: {key: part(given) for key, part in named.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return lambda given: "cuda"
    return lambda given: value


class Case:
    """A sample: what is right, the inputs on the GPU, the traced graph. `outcome` is set if it is not to be run."""

    def __init__(self, op, sample, what, backward):
        self.name, self.what, self.outcome, self.why = name_of(op), what, None, ""
        try:
            right = (gradients if backward else result)(op, sample, "cpu")
        except Exception as error:  # the sample is for a GPU only, or asks for an error
            return self.leave("skipped", f"on the CPU: {type(error).__name__}: {error}")
        found = tensors([part for part in right or [] if part is not None] if backward else right[1])
        self.right = [plain(tensor) for tensor in found]
        leaves = []
        rebuild = rebuilder((sample.input, tuple(sample.args), sample.kwargs), leaves)
        if not self.right or any(leaf.layout != torch.strided or leaf.is_conj() or leaf.is_neg() or leaf.is_quantized for leaf in leaves):
            return self.leave("skipped", "there is nothing to compare, or an input is no plain array")
        self.inputs = [on("cuda", leaf.detach()) for leaf in leaves]
        wanted = [leaf.requires_grad for leaf in leaves]

        def run(*given):
            if backward:
                given = [tensor.detach().requires_grad_(want) for tensor, want in zip(given, wanted, strict=True)]
            argument, arguments, named = rebuild(given)
            outputs = tensors(sample.output_process_fn_grad(op(argument, *arguments, **named)))
            if backward:
                outputs = [tensor for tensor in outputs if tensor.requires_grad]
                weights = [torch.linspace(0.5, 1.5, t.numel(), device="cuda").reshape(t.shape).to(t.dtype) for t in outputs]
                inputs = [tensor for tensor in given if tensor.requires_grad]
                outputs = [one for one in torch.autograd.grad(outputs, inputs, weights, allow_unused=True) if one is not None]
            return [tensor.detach() for tensor in outputs]

        try:
            self.graph = make_fx(run, decomposition_table=select_decomp_table(), tracing_mode="fake")(*self.inputs)
        except Exception as error:
            return self.leave("untraced", f"{type(error).__name__}: {error}")
        nodes = list(self.graph.graph.nodes)
        self.results = len(nodes[-1].args[0])
        calls = {node.target for node in nodes if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload)}
        lacks = sorted(str(call) for call in calls if (call not in lowering.lowerings or call in lowering.fallbacks) and call._opname not in WITHOUT_KERNEL)
        if lacks:
            self.leave("fallback", " ".join(lacks))
        return None

    def leave(self, outcome, why):
        self.outcome, self.why = outcome, why


def run_cases(cases, dtype, say):
    """Compiles them as one graph, runs and compares them."""
    def both(*given):
        outputs, at = [], 0
        for case in cases:
            outputs.extend(case.graph(*given[at:at + len(case.inputs)]))
            at += len(case.inputs)
        return tuple(outputs)

    inputs = [tensor for case in cases for tensor in case.inputs]
    signal.alarm(SECONDS)
    try:
        found = list(torch._inductor.compile(make_fx(both, tracing_mode="fake")(*inputs), inputs)(*inputs))
        torch.cuda.synchronize()
    except Exception as error:
        if len(cases) > 1:
            for case in cases:
                run_cases([case], dtype, say)
        else:
            text = f"{type(error).__name__}: {error}"
            # Inductor chooses some kernels of the wheel only when it compiles.
            say(cases[0], "fallback" if is_missing(text) else "untraced" if "DataDependent" in text else "error", text)
        return
    finally:
        signal.alarm(0)
    tolerance = TOLERANCES.get(dtype, TOLERANCE)
    for case in cases:
        ours, found = found[:case.results], found[case.results:]
        try:
            assert len(ours) == len(case.right), f"{len(ours)} results, not {len(case.right)}"
            for one, right in zip(ours, case.right, strict=True):
                torch.testing.assert_close(from_gpu(one.detach()), right, rtol=tolerance, atol=tolerance, equal_nan=True, check_stride=False, check_dtype=False)
            say(case, "pass", "")
        except AssertionError as error:
            say(case, "differs", str(error))


def child(ops, options, batch, records):
    """Runs these operators, `batch` samples at a time."""
    dtype, pending = getattr(torch, options.dtype), []

    def say(case, outcome, why):
        records.write(f"{case.name}\t{case.what}\t{outcome}\t{' '.join(why.split())[:400]}\n")
        records.flush()

    for op in ops:
        torch.manual_seed(1)
        supported = op.supported_backward_dtypes("cuda") if options.gradients else op.supported_dtypes("cuda")
        if dtype not in supported or options.gradients and not op.supports_autograd:
            continue
        samples = iter(op.sample_inputs("cpu", dtype, requires_grad=options.gradients))
        for number in range(options.samples):
            try:
                sample = next(samples, None)
            except Exception:  # of the samples' making
                break
            if sample is None:
                break
            case = Case(op, sample, f"{'gradient' if options.gradients else 'sample'} {number}", options.gradients)
            if case.outcome:
                say(case, case.outcome, case.why)
            else:
                pending.append(case)
        while len(pending) >= batch:
            run_cases(pending[:batch], dtype, say)
            del pending[:batch]
    if pending:
        run_cases(pending, dtype, say)
    os._exit(0)


def records_of(ops, options, batch):
    """A child's lines, and what ended it, if something did."""
    with tempfile.TemporaryFile("w+") as records:
        pid = os.fork()
        if not pid:
            child(ops, options, batch, records)
        status = os.waitpid(pid, 0)[1]
        records.seek(0)
        return [line.rstrip("\n").split("\t", 3) for line in records], status


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--details")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--gradients", action="store_true")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--batch", type=int, default=10)
    parser.add_argument("--begin", type=int, default=0)
    parser.add_argument("--end", type=int, default=1 << 30)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    ops = [op for op in op_db if getattr(torch, options.dtype) in op.dtypes and not RANDOM.search(op.name)]
    if options.names:
        ops = [op for op in ops if op.name in options.names or name_of(op) in options.names]
    ops = ops[options.begin:options.end]
    details = open(options.details, "w") if options.details else None
    counts, found = collections.Counter(), collections.defaultdict(dict)

    def tell(name, what, outcome, why):
        counts[outcome] += 1
        found[name].setdefault(outcome, f"{what}: {why[:160]}")
        if details:
            print(name, what, outcome, why, sep="\t", file=details, flush=True)

    for first in range(0, len(ops), 40):  # a child for each forty, as Inductor keeps what it has compiled
        part = ops[first:first + 40]
        lines, status = records_of(part, options, options.batch)
        if status:  # one of a batch ended it: its operators one by one
            lines = []
            for op in part:
                more, status = records_of([op], options, 1)
                lines += more + ([[name_of(op), "a sample", "error", f"status {status} of its process"]] if status else [])
        for line in lines:
            tell(*line)
    for name, outcomes in found.items():
        wrong = [f"{outcome}: {outcomes[outcome]}" for outcome in ("differs", "error") if outcome in outcomes]
        unrun = [f"not run: {outcome}: {outcomes[outcome]}" for outcome in ("fallback", "untraced", "skipped") if outcome in outcomes]
        print(name, (wrong or (["pass"] if "pass" in outcomes else unrun))[0], 0, sep="\t")
    print(f"samples: {sum(counts.values())} of {len(found)} operators: {dict(counts)}", file=sys.stderr)


if __name__ == "__main__":
    main()
