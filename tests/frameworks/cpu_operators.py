# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operators on the CPU, for programs whose own kernels are what is run: PyTorch's wheel has its kernels as machine code only.

    farfault run python cpu_operators.py PROGRAM ARGUMENTS

Memory stays on the GPU. What an operator reads is copied to the CPU with its storage, what it writes is copied back; views, allocations and
plain copies need no kernel and stay as they are. Operators of other libraries (torchvision, bitsandbytes) run their own code for
the GPU, and PyTorch's operators in it the same way. With pytest: `-p cpu_operators`, this folder in PYTHONPATH."""
import os
import runpy
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

WITHOUT_KERNEL = {f"aten::{name}" for name in (
    "empty.memory_format empty_strided empty_like new_empty new_empty_strided set_.source_Storage set_.source_Storage_storage_offset "
    "set_.source_Tensor resize_ record_stream is_pinned _pin_memory _local_scalar_dense detach alias as_strided view view.dtype _unsafe_view "
    "_reshape_alias t transpose.int permute expand slice.Tensor select.int unsqueeze squeeze squeeze.dim squeeze.dims unbind.int split.Tensor "
    "diagonal unfold lift_fresh").split()}


def on_gpu(value):
    return isinstance(value, torch.Tensor) and value.is_cuda


def storage_bytes(tensor):
    return torch.empty(0, dtype=torch.uint8, device=tensor.device).set_(tensor.untyped_storage())


def view_like(tensor, storage, device):
    """The tensor's type, place and strides in another storage."""
    return torch.empty(0, dtype=tensor.dtype, device=device).set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


class Copies:
    """The storages that one operator reads, on the CPU, and the tensors in them."""

    def __init__(self):
        self.storages = {}  # by address on the GPU: bytes on the CPU, a tensor on the GPU
        self.originals = {}  # by the copy's id: the copy, the tensor on the GPU

    def down(self, value):
        if not on_gpu(value):
            return value
        address = value.untyped_storage().data_ptr()
        if address not in self.storages:
            self.storages[address] = (storage_bytes(value).cpu(), value)
        copy = view_like(value, self.storages[address][0].untyped_storage(), "cpu")
        copy = copy.conj() if value.is_conj() else copy
        copy = torch._neg_view(copy) if value.is_neg() else copy
        self.originals[id(copy)] = (copy, value)
        return copy

    def write_back(self, tensor):
        if tensor.untyped_storage().nbytes():
            storage_bytes(tensor).copy_(self.storages[tensor.untyped_storage().data_ptr()][0])

    def up(self, value, device):
        if not isinstance(value, torch.Tensor) or value.device.type != "cpu":
            return value
        if id(value) in self.originals:
            return self.originals[id(value)][1]
        if device.type != "cuda":
            return value
        for copied, original in self.storages.values():
            if copied.numel() and copied.data_ptr() == value.untyped_storage().data_ptr():
                return view_like(value, original.untyped_storage(), original.device)
        return view_like(value, storage_bytes(value).to(device).untyped_storage(), device)


def written(schema, args, kwargs):
    for place, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from filter(on_gpu, tree_leaves(args[place] if place < len(args) else kwargs.get(argument.name)))


class CpuOperators(TorchDispatchMode):
    def inside(self, func, args, kwargs):
        """Another library's operator, by its code's key: by its name it would come here again."""
        for key in ("CUDA", "CompositeExplicitAutograd", "CompositeImplicitAutograd"):
            if torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key):
                with self:
                    return func._op_dk(getattr(torch._C.DispatchKey, key), *args, **kwargs)
        return func(*args, **kwargs)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs, schema = dict(kwargs or {}), func._schema
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        tensors = [value for value in tree_leaves((args, kwargs)) if on_gpu(value)]
        device = torch.device(kwargs["device"]) if kwargs.get("device") is not None else None
        if name in WITHOUT_KERNEL or not (tensors or device and device.type == "cuda"):
            return func(*args, **kwargs)
        if not name.startswith("aten::"):
            return self.inside(func, args, kwargs)
        if any(type(tensor) not in (torch.Tensor, torch.nn.Parameter) for tensor in tensors):
            return func(*args, **kwargs)
        if device:
            kwargs["device"] = torch.device("cpu")
        if getattr(kwargs.get("generator"), "device", torch.device("cpu")).type == "cuda":
            kwargs["generator"] = None
        torch.cuda.synchronize()
        copies = Copies()
        cpu_args, cpu_kwargs = tree_map(copies.down, (args, kwargs))
        try:
            result = func(*cpu_args, **cpu_kwargs)
        except NotImplementedError:  # the CPU has no such operator: cuDNN's attention
            return func(*args, **dict(kwargs, device=device) if device else kwargs)
        for tensor in written(schema, args, kwargs):
            copies.write_back(tensor)
        return tree_map(lambda value: copies.up(value, device or tensors[0].device), result)


# Of the ways to compute attention one has operators that a CPU has, too: products and softmax. A program that asks for another one by name gets it.
torch.backends.cuda.enable_flash_sdp(False)
torch.backends.cuda.enable_mem_efficient_sdp(False)
mode = CpuOperators()
mode.__enter__()  # for as long as the process lives
shown = torch._tensor_str._str
torch._tensor_str._str = lambda self, **options: shown(self.detach().cpu() if self.is_cuda else self, **options)

if __name__ == "__main__":
    sys.argv = sys.argv[1:]
    sys.path.insert(0, os.path.dirname(os.path.abspath(sys.argv[0])))
    runpy.run_path(sys.argv[0], run_name="__main__")
