# SPDX-License-Identifier: Apache-2.0
"""What a run or a simulation left: as Python's own lists and dicts, as pandas frames, as matplotlib charts."""

from __future__ import annotations

import ctypes
import json
import os
import tempfile
import weakref
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, Optional, Tuple, Union

from . import _library

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

Row = Dict[str, Any]

_DERIVED = ("time_us", "kernel_us", "transfer_us", "ratio", "link_utilisation", "tlb_miss_rate")


class MissingPackageError(_library.Error, ImportError):
    """pandas or matplotlib is needed for what was asked, and is not installed."""


def need_pandas(what: str, instead: str) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingPackageError(f"{what} needs pandas, which is not installed (pip install pandas); {instead} has the same without") from None
    return pandas


def need_pyplot(what: str) -> Any:
    try:
        import matplotlib.pyplot
    except ImportError:
        raise MissingPackageError(f"{what} needs matplotlib, which is not installed (pip install matplotlib)") from None
    return matplotlib.pyplot


def counters() -> List[Row]:
    """All counters of a simulation: name, unit ("ps", "B" or ""), help."""
    count = ctypes.c_uint32()
    infos = _library.library().ff_simulate_counters(ctypes.byref(count))
    return [{"name": infos[i].name.decode(), "unit": infos[i].unit.decode(), "help": infos[i].help.decode()} for i in range(count.value)]


_names: List[str] = []


def counter_names() -> List[str]:
    if not _names:
        _names.extend(row["name"] for row in counters())
    return _names


def write_whole(path: Union[str, "os.PathLike[str]"], text: str) -> None:
    """The file has its name only when it is whole."""
    path = os.path.realpath(os.fspath(path))
    made, name = tempfile.mkstemp(prefix=os.path.basename(path) + ".tmp-", dir=os.path.dirname(path))
    try:
        with os.fdopen(made, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


class Simulation:
    """One memory manager on one device of one process. `simulation["faults"]` is a counter."""

    def __init__(self, run: Row, process: int, process_of: Row) -> None:
        self._run = run
        self._process_of = process_of
        self.process = process
        #: of a program that has several GPUs, which one, from 0
        self.device: Optional[int] = run.get("device")
        self.memory: str = run["memory"]
        self.machine: str = run["machine"]
        #: why the manager could not run the program: the numbers are no result
        self.error: Optional[str] = run.get("error")
        #: the numbers are of all that the program did
        self.complete: bool = run["complete"]
        #: its time over that of `copy`, or of the first simulation without an error; 0: there is none
        self.ratio: float = run["ratio"]
        self.time_us: float = run["time_us"]
        #: docs/json.md, "The history"; None: none was kept
        self.history: Optional[Row] = run.get("history")

    def __getitem__(self, name: str) -> Union[int, float]:
        if name in _DERIVED or name in counter_names():
            value: Union[int, float] = self._run.get(name, 0)
            return value
        raise KeyError(f"{name}: no counter (farfault.counters() has all)")

    @property
    def counters(self) -> Dict[str, int]:
        """All counters by name."""
        return {name: self._run.get(name, 0) for name in counter_names()}

    def row(self) -> Row:
        """All numbers of the simulation, with what they are of in front."""
        row: Row = {"memory": self.memory, "machine": self.machine, "process": self.process, "device": self.device,
                    "complete": self.complete, "error": self.error}
        row.update((name, self._run[name]) for name in _DERIVED)
        row.update(self.counters)
        return row

    def kernel_rows(self) -> List[Row]:
        """A dict for each kernel (and range of the program's), all its launches together."""
        return [self._part(kernel, {"name": kernel["name"], "range": kernel.get("range", "")}) for kernel in self._run["kernels"]]

    def allocation_rows(self) -> List[Row]:
        """A dict for each allocation."""
        own = ("name", "id", "address", "bytes", "managed", "pinned")
        return [self._part(allocation, {key: allocation[key] for key in own}) for allocation in self._run["allocations"]]

    def _part(self, part: Row, own: Row) -> Row:
        row: Row = {"memory": self.memory, "machine": self.machine, **own}
        row.update((name, part.get(name, 0)) for name in counter_names())
        return row

    def _kept(self, what: str) -> Row:
        if self.history is None:
            raise _library.InvalidError(f"{what}: no history was kept: history=True keeps one")
        return self.history

    def series_rows(self) -> List[Row]:
        """What happened over time: a dict for each bin, with `time_us` of its beginning and a value of each series."""
        kept = self._kept("series")
        return [{"time_us": i * kept["bin_ps"] / 1e6, **{name: values[i] for name, values in kept["series"].items()}}
                for i in range(kept["bins"])]

    def event_rows(self, kind: str) -> List[Row]:
        """The events of a kind ("kernels", "copies", "ranges", "batches", "transfers"): a dict each, in order of their beginning."""
        kept = self._kept("events")
        if kind not in ("kernels", "copies", "ranges", "batches", "transfers"):
            raise _library.InvalidError(f"{kind}: no kind of event: kernels, copies, ranges, batches, transfers")
        columns = {name: values for name, values in kept.get(kind, {}).items() if isinstance(values, list)}
        rows = [dict(zip(columns, values)) for values in zip(*columns.values())]
        if kind == "kernels":
            for row in rows:
                row["name"] = self._run["kernels"][row["kernel"]]["name"]
        return rows

    def series(self) -> "pandas.DataFrame":
        """series_rows() as a frame, by time_us."""
        return need_pandas("series()", "series_rows()").DataFrame(self.series_rows()).set_index("time_us")

    def events(self, kind: str) -> "pandas.DataFrame":
        """event_rows(kind) as a frame."""
        return need_pandas("events()", "event_rows()").DataFrame(self.event_rows(kind))

    def plot(self, *names: str, ax: Optional["matplotlib.axes.Axes"] = None) -> "matplotlib.axes.Axes":
        """Series of the history over time (default: bytes in and out, and what is resident), each as a line. Returns the axes."""
        rows = self.series_rows()
        ax = ax or need_pyplot("plot()").subplots()[1]
        there = self._kept("plot")["series"]
        for name in names or [n for n in ("h2d_bytes", "d2h_bytes", "resident_bytes") if n in there]:
            if name not in there:
                raise _library.InvalidError(f"{name}: no series of this simulation: {', '.join(there)}")
            ax.step([row["time_us"] for row in rows], [row[name] for row in rows], where="post", label=name)
        ax.set_xlabel("simulated time [us]")
        ax.set_title(f"{self._process_of.get('command', '')}: {self.memory} on {self.machine}")
        ax.legend()
        return ax

    def __repr__(self) -> str:
        said = f"error={self.error!r}" if self.error else f"time_us={self.time_us:.1f}"
        return f"<farfault.Simulation {self.memory} on {self.machine}, {said}>"


class Result:
    """What a program or a recording gave: a simulation for each memory manager. `result["copy"]` is the first one of that name, iteration gives
    all, and `print(result)` the table that the command prints."""

    def __init__(self, handle: int, output: str = "", errors: str = "") -> None:
        library = _library.library()
        self._handle = handle
        weakref.finalize(self, library.ff_simulate_free, ctypes.c_void_p(handle))
        #: of the program, as a shell has it; 0 of a recording or a file
        self.exit_status: int = library.ff_simulate_exit_status(handle)
        #: what the program wrote to stdout and stderr, unless it was shown
        self.output = output
        self.errors = errors
        #: the JSON of each process of the program (docs/json.md)
        self.processes: List[Row] = [json.loads(library.ff_simulate_json(handle, i)) for i in range(library.ff_simulate_process_count(handle))]
        self.simulations: List[Simulation] = [Simulation(run, i, process) for i, process in enumerate(self.processes) for run in process["runs"]]
        #: sentences for the reader, of all processes
        self.notes: List[str] = [note for process in self.processes for note in process["notes"]]

    def __getitem__(self, memory: Union[str, int]) -> Simulation:
        if isinstance(memory, int):
            return self.simulations[memory]
        for simulation in self.simulations:
            if simulation.memory == str(memory):
                return simulation
        raise KeyError(f"{memory}: no memory manager of this result, which has {', '.join(s.memory for s in self.simulations)}")

    def __iter__(self) -> Iterator[Simulation]:
        return iter(self.simulations)

    def __len__(self) -> int:
        return len(self.simulations)

    def rows(self) -> List[Row]:
        """A dict for each simulation, with all counters."""
        return [simulation.row() for simulation in self.simulations]

    def kernel_rows(self) -> List[Row]:
        return [row for simulation in self.simulations for row in simulation.kernel_rows()]

    def allocation_rows(self) -> List[Row]:
        return [row for simulation in self.simulations for row in simulation.allocation_rows()]

    def frame(self) -> "pandas.DataFrame":
        """A row for each simulation, with all counters."""
        return need_pandas("frame()", "rows()").DataFrame(self.rows())

    def kernels(self) -> "pandas.DataFrame":
        """A row for each kernel under each manager."""
        return need_pandas("kernels()", "kernel_rows()").DataFrame(self.kernel_rows())

    def allocations(self) -> "pandas.DataFrame":
        """A row for each allocation under each manager."""
        return need_pandas("allocations()", "allocation_rows()").DataFrame(self.allocation_rows())

    def table(self, verbose: bool = False) -> str:
        """The tables that `farfault run` prints; verbose: those of `farfault run -v`."""
        library, parts = _library.library(), []
        for i in range(len(self.processes)):
            text = library.ff_simulate_table(self._handle, i, verbose)
            parts.append(ctypes.string_at(text).decode("utf-8", "replace"))
            library.ff_simulate_free_text(text)
        return "\n".join(parts)

    def save(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the result's JSON, for read(), `farfault report` and others; further processes of the program go to PATH.2, PATH.3."""
        for i in range(len(self.processes)):
            text = _library.library().ff_simulate_json(self._handle, i).decode()
            write_whole(os.fspath(path) + (f".{i + 1}" if i else ""), text)

    def plot(self, counter: str = "time_us", ax: Optional["matplotlib.axes.Axes"] = None) -> "matplotlib.axes.Axes":
        """A bar of a counter, or of one of time_us, kernel_us, transfer_us, ratio, for each manager that could run the program. Returns the
        axes."""
        shown: List[Tuple[str, Any]] = [(s.memory, s[counter]) for s in self.simulations if not s.error]
        ax = ax or need_pyplot("plot()").subplots()[1]
        ax.bar(range(len(shown)), [value for _, value in shown])
        ax.set_xticks(range(len(shown)), [memory for memory, _ in shown])
        ax.set_ylabel(counter)
        if self.processes:
            ax.set_title(f"{self.processes[0].get('command', '')} on {', '.join(dict.fromkeys(s.machine for s in self.simulations))}")
        return ax

    def __str__(self) -> str:
        return self.table().rstrip("\n")

    def __repr__(self) -> str:
        return f"<farfault.Result {', '.join(s.memory for s in self.simulations)}>"

    def _repr_html_(self) -> str:
        """In a notebook: the table."""
        text = str(self).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        return f"<pre>{text}</pre>"
