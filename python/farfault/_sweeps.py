# SPDX-License-Identifier: Apache-2.0
"""sweep(): a study's points simulated into a database, and what is asked of that (docs/sweeps.md, docs/results-db.md)."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import tempfile
import weakref
from contextlib import closing
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Union

from . import _library
from ._results import Row, need_pandas, need_pyplot
from ._running import Manager, Path, _Call

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

Values = Union[Any, Sequence[Any]]


class Sweep:
    """The points of a sweep, in an SQLite database."""

    def __init__(self, database: Path) -> None:
        self.database = os.fspath(database)
        if not os.path.exists(self.database):
            raise _library.BadFileError(f"{self.database}: there is no such database")
        self.query("SELECT count(*) FROM results")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> List[Row]:
        """The rows of a query, as dicts; docs/results-db.md has the tables."""
        address = FilePath(self.database).absolute().as_uri() + "?mode=ro"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(sql, parameters)]
        except sqlite3.Error as error:
            raise _library.BadFileError(f"{self.database}: {error}") from error

    def rows(self) -> List[Row]:
        """A dict for each point: what it is, `state`, `error`, times, ratio and all counters."""
        return self.query("SELECT * FROM results ORDER BY point")

    def kernel_rows(self) -> List[Row]:
        return self.query("SELECT * FROM kernels ORDER BY point, kernel")

    def allocation_rows(self) -> List[Row]:
        return self.query("SELECT * FROM allocations ORDER BY point, allocation")

    def frame(self) -> "pandas.DataFrame":
        """rows() as a frame."""
        return need_pandas("frame()", "rows()").DataFrame(self.rows())

    def kernels(self) -> "pandas.DataFrame":
        return need_pandas("kernels()", "kernel_rows()").DataFrame(self.kernel_rows())

    def allocations(self) -> "pandas.DataFrame":
        return need_pandas("allocations()", "allocation_rows()").DataFrame(self.allocation_rows())

    def plot(self, x: str, y: str = "time_us", by: str = "memory", ax: Optional["matplotlib.axes.Axes"] = None) -> "matplotlib.axes.Axes":
        """The points as lines: `y` over `x`, both columns of the database (gpu_memory, fault_us, ...), a line for each value of `by`. Points
        with an error are left out. Returns the axes."""
        lines: Dict[Any, List[Any]] = {}
        for row in self.rows():
            for name in (x, y, by):
                if name not in row:
                    raise _library.InvalidError(f"{name}: no column of {self.database}")
            if row["state"] == "done":
                lines.setdefault(row[by], []).append((row[x], row[y]))
        ax = ax or need_pyplot("plot()").subplots()[1]
        for name, points in lines.items():
            ax.plot([point[0] for point in points], [point[1] for point in points], marker="o", label=str(name))
        ax.set_xlabel(x)
        ax.set_ylabel(y)
        ax.legend(title=by)
        return ax

    def __len__(self) -> int:
        return int(self.query("SELECT count(*) AS points FROM results")[0]["points"])

    def __repr__(self) -> str:
        return f"<farfault.Sweep {self.database}, {len(self)} points>"


def _plain(value: Any) -> Any:
    """For the study: paths and managers as texts, numbers as they are."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Manager):
        if any(callable(choice) for choice in value.choices.values()):
            raise _library.InvalidError(f"{value!r}: policies in Python are for run() and simulate()")
        return "+".join([value.name, *(f"{name.replace('_', '-') if name in ('gpu_memory', 'write_back') else name}={choice}"
                                       for name, choice in value.choices.items())])
    if callable(value):
        raise _library.InvalidError(f"{value!r}: policies in Python are for run() and simulate()")
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _absolute(trace: Any) -> Any:
    """Paths in a study are relative to its folder."""
    if isinstance(trace, (list, tuple)):
        return [_absolute(one) for one in trace]
    return os.path.abspath(os.fspath(trace))


def _machine(machine: Any) -> Any:
    if isinstance(machine, (list, tuple)):
        return [_machine(one) for one in machine]
    text = os.fspath(machine)
    return os.path.abspath(text) if os.sep in text or text.endswith(".yaml") else text


def sweep(trace: Values, *, memory: Values, machine: Values, database: Optional[Path] = None, jobs: Optional[int] = None,
          title: Optional[str] = None, limit: Optional[int] = None, show: bool = False, **parameters: Values) -> Sweep:
    """Simulates all combinations of recordings, managers, machines and parameters, as `farfault sweep` does.

    Each of them is one value or a list; parameters: gpu_memory=["50%", "75%"], prefetch=[...], set={"fault_us": [10, 20]}. database: a file that
    keeps the results; one that is there goes on where it was; default: a temporary one, which goes with the result. jobs: points at once
    (default: one per core). show: progress and messages go to this process's stderr.

    Points that a manager cannot run have an error in their row, and the others their numbers. Raises BadFileError if the study is refused.
    """
    study: Row = {"title": title} if title else {}
    study.update({"trace": _absolute(trace), "machine": _machine(machine), "memory": _plain(memory)})
    study.update((name.replace("_", "-"), _plain(value)) for name, value in parameters.items() if value is not None)
    folder = tempfile.mkdtemp(prefix="farfault-sweep-")
    into = os.path.join(folder, "study.db") if database is None else os.path.abspath(os.fspath(database))
    result: Optional[Sweep] = None
    try:
        _run_study(study, os.path.join(folder, "study.yaml"), into, show, {"jobs": jobs, "limit": limit})
        result = Sweep(into)
    finally:
        if result is None or database is not None:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            weakref.finalize(result, shutil.rmtree, folder, ignore_errors=True)
    return result


def _run_study(study: Row, path: str, into: str, show: bool, choices: Mapping[str, Any]) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(study, file, indent=1)  # which is YAML
    call = _Call(None, None, False, show, None, choices)
    try:
        call.do(call.library.ff_simulate_sweep, os.fsencode(path), os.fsencode(into), ctypes.byref(call.options))
    except _library.FailedError as error:
        if "points have an error" not in str(error) or "stopped:" in str(error):
            raise
