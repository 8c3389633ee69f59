# SPDX-License-Identifier: Apache-2.0
"""farfault from Python: run CUDA programs on a virtual GPU, record and simulate them, and get the results as lists, pandas frames and charts.

    import farfault

    result = farfault.run(["./saxpy", "1000000"], memory=["copy", "uvm", "auto"], machine="v100")
    print(result)                       # the table that the command prints
    result["uvm"]["faults"]             # a counter
    result.frame()                      # a pandas frame

Everything is done by the program farfault, through libfarfault-simulate; docs/python.md has examples. Only what returns frames needs pandas, and
only charts need matplotlib.
"""

from ._library import (BadFileError, Error, FailedError, InvalidError, NoProgramError, NoResultsError, NotInstalledError, StoppedError, library,
                       library_file)
from ._policies import BLOCK_BYTES, GROUP_BYTES, PAGE_BYTES, Allocation, Block, Fault, Policy, View
from ._results import MissingPackageError, Result, Simulation, counters
from ._running import Manager, Recording, manager, read, record, run, simulate
from ._sweeps import Sweep, sweep

__version__ = "0.1.0"

__all__ = [
    "run", "record", "simulate", "sweep", "read", "manager", "counters", "release", "workload", "library_file",
    "Result", "Simulation", "Recording", "Sweep", "Manager",
    "Policy", "View", "Fault", "Allocation", "Block", "PAGE_BYTES", "GROUP_BYTES", "BLOCK_BYTES",
    "Error", "InvalidError", "BadFileError", "NoProgramError", "NotInstalledError", "NoResultsError", "StoppedError", "FailedError",
    "MissingPackageError",
]


def release() -> str:
    """The version of farfault that does the work: "0.1.0"."""
    version: bytes = library().ff_simulate_release()
    return version.decode()


def workload(name: str) -> str:
    """The path of a bundled CUDA program (`farfault list workloads`): "vectoradd"."""
    installed = library_file().parent
    for folder in (installed / "farfault" / "workloads", installed.parent / "workloads"):  # of an installation, of a build folder
        if (folder / name).is_file():
            return str(folder / name)
    raise BadFileError(f"{name}: no bundled workload (`farfault list workloads` prints all)")
