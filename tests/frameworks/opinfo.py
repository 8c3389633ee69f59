# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of its operators (OpInfo), for the programs that compare a GPU with the CPU (check_opinfo.py, check_opinfo-compiled.py).

Importing it starts no CUDA, so that children that are forked can."""
import re

import torch
import torch.utils._triton

# The import asks what GPU there is, which would start CUDA before the children are forked; what hangs on it is about other types than float32.
asked = {"is_available": lambda: True, "device_count": lambda: 1, "get_device_capability": lambda device=None: (8, 0)}
real = {name: getattr(torch.cuda, name) for name in asked}
vars(torch.cuda).update(asked)
torch.utils._triton.has_triton = lambda *_, **__: True
from torch.testing._internal.common_methods_invocations import op_db

vars(torch.cuda).update(real)

TOLERANCE = 1e-3
RANDOM = re.compile("dropout|rand|normal|bernoulli|multinomial|exponential|uniform|cauchy|geometric|empty|rrelu|fractional|svd_lowrank|pca_lowrank")


def name_of(op):
    return op.name + ("." + op.variant_test_name if op.variant_test_name else "")


def skipped(op, dtype=torch.float32):
    """Whether PyTorch's own comparison with the CPU leaves the operator out."""
    if dtype not in op.supported_dtypes("cuda"):
        return True

    def test():
        pass

    for decorate in op.get_decorators("TestCommon", "test_compare_cpu", "cuda", dtype, {}):
        try:
            test = decorate(test)
        except Exception:  # decorators that want a test class: none of those skips
            continue
    return getattr(test, "__unittest_skip__", False) or getattr(test, "__unittest_expecting_failure__", False)


def on(device, value):
    """The value with its tensors on the device; a tensor keeps its strides, and its place in a larger storage."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided or value.is_quantized or value.is_conj() or value.is_neg():
            return value.detach().to(device).requires_grad_(value.requires_grad)
        items = value.untyped_storage().nbytes() // value.element_size()
        whole = torch.as_strided(value.detach(), (items,), (1,), 0).to(device)
        return torch.as_strided(whole, value.shape, value.stride(), value.storage_offset()).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        parts = [on(device, part) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    if isinstance(value, dict):
        return {key: on(device, part) for key, part in value.items()}
    if isinstance(value, torch.device) or value == "cpu":
        return device
    return value


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part)]
    return [tensor for part in value.values() for tensor in tensors(part)] if isinstance(value, dict) else []


def result(op, sample, device):
    arguments = on(device, (sample.input, tuple(sample.args), sample.kwargs))
    if device == "cpu":
        arguments = on(device, arguments)  # operators that write to their input
    found = op(arguments[0], *arguments[1], **arguments[2])
    return arguments, sample.output_process_fn_grad(found)


def gradients(op, sample, device):
    arguments, found = result(op, sample, device)
    outputs = [tensor for tensor in tensors(found) if tensor.requires_grad]
    inputs = [tensor for tensor in tensors(arguments) if tensor.requires_grad]
    if not outputs or not inputs:
        return None
    weights = [torch.linspace(0.5, 1.5, t.numel()).reshape(t.shape).to(t.dtype).to(device) for t in outputs]
    return torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def from_gpu(tensor):
    """On the CPU, without a kernel: the whole storage is copied, whatever the strides are."""
    if tensor.device.type != "cuda" or tensor.layout != torch.strided:
        return tensor.cpu()
    items = tensor.untyped_storage().nbytes() // tensor.element_size()
    whole = torch.empty(0, dtype=tensor.dtype, device="cuda").set_(tensor.untyped_storage(), 0, (items,), (1,)).cpu()
    found = torch.as_strided(whole, tensor.shape, tensor.stride(), tensor.storage_offset())
    found = found.conj() if tensor.is_conj() else found
    return torch._neg_view(found) if tensor.is_neg() else found


def is_missing(text):
    """Of an exception's text. CUB's host code adds the last error to what cudaGetDevice answers, so that after a launch whose error nothing has looked at
    it says "invalid device ordinal"."""
    return "no kernel image" in text or "device kernel image" in text or "invalid device ordinal" in text


def plain(value):
    if isinstance(value, torch.Tensor):
        value = from_gpu(value.detach())
        return value.to_dense() if value.layout != torch.strided else value
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    return {key: plain(part) for key, part in value.items()} if isinstance(value, dict) else value
