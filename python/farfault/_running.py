# SPDX-License-Identifier: Apache-2.0
"""run(), record(), simulate() and read(): keyword arguments become the options of the command, its outcome a result."""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, Union

from . import _library
from ._policies import Policy, PolicyServer
from ._results import Result

Path = Union[str, "os.PathLike[str]"]
PolicyMaker = Callable[[], Policy]


class Manager:
    """A memory manager with parts of it changed, as `farfault run --memory MANAGER+NAME=VALUE...` has them:

        manager("uvm", evict="lru:64K", gpu_memory="50%", fault_us=5)

    `prefetch` and `evict` may also be a class made from farfault.Policy.
    """

    def __init__(self, name: str, choices: Mapping[str, Any]) -> None:
        self.name = name
        self.choices = dict(choices)

    def text(self, server: PolicyServer) -> str:
        parts = [self.name]
        for name, value in self.choices.items():
            # a choice has dashes in its name, a value of the machine has underscores
            option = name.replace("_", "-") if name.replace("_", "-") in _DASHED else name
            parts.append(f"{option}={server.name_of(value) if callable(value) else value}")
        return "+".join(parts)

    def __repr__(self) -> str:
        return f"farfault.manager({self.name!r}, {', '.join(f'{k}={v!r}' for k, v in self.choices.items())})"


_DASHED = ("gpu-memory", "write-back")

Memory = Union[str, Manager, Sequence[Union[str, Manager]]]


def manager(name: str, **choices: Any) -> Manager:
    """A memory manager with parts of it changed; see Manager."""
    return Manager(name, choices)


def _memory_text(memory: Optional[Memory], server: PolicyServer) -> Optional[str]:
    if memory is None:
        return None
    several = [memory] if isinstance(memory, (str, Manager)) else list(memory)
    if not several:
        raise _library.InvalidError("memory: no manager is named")
    return ",".join(one.text(server) if isinstance(one, Manager) else str(one) for one in several)


def _arguments(choices: Mapping[str, Any], server: PolicyServer) -> List[str]:
    """gpu_memory="50%" -> "--gpu-memory=50%"; virtual_time=True -> "--virtual-time"; set={"fault_us": 5} -> "--set=fault_us=5"."""
    words: List[str] = []
    for name, value in choices.items():
        option = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            words += [f"{option}={key}={one}" for key, one in value.items()]
        elif isinstance(value, (list, tuple)):
            words += [f"{option}={one}" for one in value]
        else:
            words.append(f"{option}={server.name_of(value) if callable(value) else value}")
    return words


class _Outputs:
    """Where what runs writes to: files that are read afterwards, or where this process writes to."""

    def __init__(self, show: bool) -> None:
        self._files = [] if show else [tempfile.TemporaryFile(), tempfile.TemporaryFile()]
        self.streams = (-1, 1, 2) if show else (-1, self._files[0].fileno(), self._files[1].fileno())
        if show:
            sys.stdout.flush()
            sys.stderr.flush()

    def read(self) -> Tuple[str, str]:
        if not self._files:
            return "", ""
        texts = []
        for file in self._files:
            file.seek(0)
            texts.append(file.read().decode("utf-8", "replace"))
        return texts[0], texts[1]

    def close(self) -> None:
        for file in self._files:
            file.close()


def _environment(given: Optional[Mapping[str, str]], server: PolicyServer) -> List[str]:
    """This process's variables as os.environ has them, with those that are given."""
    variables: Dict[str, str] = {**os.environ, **(given or {}), **server.variables()}
    return [f"{name}={value}" for name, value in variables.items()]


class _Call:
    """One call that runs something: its options, its outputs, the policies that it asks."""

    def __init__(self, memory: Optional[Memory], machine: Optional[Path], history: bool, show: bool, environment: Optional[Mapping[str, str]],
                 choices: Mapping[str, Any]) -> None:
        self.library = _library.library()
        self.server = PolicyServer()
        text, arguments = _memory_text(memory, self.server), _arguments(choices, self.server)
        self.outputs = _Outputs(show)
        self.options, self._keep = _library.make_options(text, None if machine is None else os.fspath(machine), arguments, history,
                                                         _environment(environment, self.server), self.outputs.streams)
        self.output = self.errors = ""

    def do(self, function: Callable[..., int], *before: Any) -> None:
        """Runs it to its end; an error, or an exception of a policy, is raised."""
        try:
            with self.server:
                status, error = _library.call(self.options, function, *before, failed=self.server.failed)
            self.output, self.errors = self.outputs.read()
        finally:
            self.outputs.close()
        self.server.check()
        _library.check(status, error, self.errors)

    def result(self, function: Callable[..., int], *before: Any) -> Result:
        handle = ctypes.c_void_p()
        self.do(function, *before, ctypes.byref(self.options), ctypes.byref(handle))
        assert handle.value is not None
        return Result(handle.value, self.output, self.errors)


def _words(program: Union[Path, Sequence[Path]]) -> Any:
    several = [program] if isinstance(program, (str, os.PathLike)) else list(program)
    return _library.texts([os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in several])


def run(program: Union[Path, Sequence[Path]], *, memory: Optional[Memory] = None, machine: Optional[Path] = None, history: bool = False,
        show: bool = False, environment: Optional[Mapping[str, str]] = None, **choices: Any) -> Result:
    """Runs a CUDA program on the virtual GPU, as `farfault run` does.

    program: its path, or a list of its path and arguments. memory: "copy,uvm", or a list of names and manager(...). machine: a bundled machine,
    or a machine file. history: also what happened when (Simulation.series, Simulation.events). show: the program writes where this process does,
    else its output is in the result. environment: variables in addition to this process's. All other keyword arguments are options of `farfault
    run` without their dashes: gpu_memory="50%", prefetch="tbn", threads=2, virtual_time=True, set={"fault_us": 20}. prefetch and evict may be a
    class made from farfault.Policy. The program's stdin is empty.

    The program's own failure is no error: Result.exit_status. Raises InvalidError, BadFileError, NoProgramError, NoResultsError, FailedError.
    """
    call = _Call(memory, machine, history, show, environment, choices)
    return call.result(call.library.ff_simulate_run, _words(program))


class Recording:
    """A file that `record` wrote."""

    def __init__(self, path: str, exit_status: int, output: str, errors: str) -> None:
        self.path = path
        #: of the program, as a shell has it
        self.exit_status = exit_status
        #: what the program wrote, unless it was shown
        self.output = output
        self.errors = errors

    def __fspath__(self) -> str:
        return self.path

    def simulate(self, **choices: Any) -> Result:
        """simulate() of this recording."""
        return simulate(self, **choices)

    def __repr__(self) -> str:
        return f"<farfault.Recording {self.path}>"


def record(program: Union[Path, Sequence[Path]], trace: Path, *, machine: Optional[Path] = None, show: bool = False,
           environment: Optional[Mapping[str, str]] = None, **choices: Any) -> Recording:
    """Runs a CUDA program and writes what it does to memory into the file `trace`, as `farfault record` does; simulate() takes it.

    Keyword arguments as of run(); those that say how it is simulated have no meaning here.
    """
    call = _Call(None, machine, False, show, environment, choices)
    status = ctypes.c_int()
    call.do(call.library.ff_simulate_record, _words(program), os.fsencode(trace), ctypes.byref(call.options), ctypes.byref(status))
    return Recording(os.fspath(trace), status.value, call.output, call.errors)


def simulate(trace: Path, *, memory: Optional[Memory] = None, machine: Optional[Path] = None, history: bool = False, **choices: Any) -> Result:
    """Simulates a recording, as `farfault sim` does.

    memory, machine, history and further keyword arguments as of run(); those that say how a program is executed have no meaning here. Without a
    machine it is that of the recording.
    """
    call = _Call(memory, machine, history, False, None, choices)
    return call.result(call.library.ff_simulate_recording, os.fsencode(trace))


def read(path: Path) -> Result:
    """Reads a file that `farfault run -o` or `--json`, or Result.save, wrote."""
    library, handle, error = _library.library(), ctypes.c_void_p(), _library._CallError()
    _library.check(library.ff_simulate_read(os.fsencode(path), ctypes.byref(handle), ctypes.byref(error)), error)
    assert handle.value is not None
    return Result(handle.value)
