# SPDX-License-Identifier: Apache-2.0
"""libfarfault-simulate by ctypes: finding it, its types (include/farfault/simulate.h), and calls that Ctrl-C can stop.

Nothing is loaded before the first call, so that importing the package never fails.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import threading
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence, Tuple

VERSION = 1
NAME = f"libfarfault-simulate.so.{VERSION}"


# ---- exceptions ----


class Error(Exception):
    """Something went wrong; the text says what, and where (a file, its line and column).

    `errors` has what the program and farfault wrote to stderr, as far as it was not shown.
    """

    errors: str = ""


class InvalidError(Error, ValueError):
    """An argument or option that cannot be; nothing was run."""


class BadFileError(Error):
    """A file is missing, broken or of no use: a trace, a machine, a program without PTX."""


class NoProgramError(Error, FileNotFoundError):
    """The CUDA program is not there or cannot be executed."""


class NotInstalledError(Error, ImportError):
    """The library or the program farfault was not found."""


class NoResultsError(Error):
    """The program ran, and did not use the virtual GPU."""


class StoppedError(Error):
    """A signal ended what ran."""


class FailedError(Error):
    """Something else: the system refused, or some points of a sweep have an error."""


_ERRORS = {1: InvalidError, 2: BadFileError, 3: NoProgramError, 4: NotInstalledError, 5: NoResultsError,
           6: StoppedError, 7: FailedError}


# ---- types ----

_GO_ON = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p)
_TEXTS = ctypes.POINTER(ctypes.c_char_p)


class _CallError(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("message", ctypes.c_char * 4096)]


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("memory", ctypes.c_char_p), ("machine", ctypes.c_char_p), ("arguments", _TEXTS),
                ("history", ctypes.c_bool), ("environment", _TEXTS), ("streams", ctypes.POINTER(ctypes.c_int)),
                ("go_on", _GO_ON), ("context", ctypes.c_void_p), ("program", ctypes.c_char_p)]


class _CounterInfo(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("unit", ctypes.c_char_p), ("help", ctypes.c_char_p)]


# name: what it returns, what it takes; of calls that run something without the options and the error at the end
_RESULT = ctypes.c_void_p
_FUNCTIONS = {
    "ff_simulate_version": (ctypes.c_uint32, []),
    "ff_simulate_release": (ctypes.c_char_p, []),
    "ff_simulate_run": (ctypes.c_int, [_TEXTS, ctypes.POINTER(_Options), ctypes.POINTER(_RESULT), ctypes.POINTER(_CallError)]),
    "ff_simulate_record": (ctypes.c_int, [_TEXTS, ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(ctypes.c_int),
                                          ctypes.POINTER(_CallError)]),
    "ff_simulate_recording": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(_RESULT),
                                             ctypes.POINTER(_CallError)]),
    "ff_simulate_sweep": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(_CallError)]),
    "ff_simulate_read": (ctypes.c_int, [ctypes.c_char_p, ctypes.POINTER(_RESULT), ctypes.POINTER(_CallError)]),
    "ff_simulate_free": (None, [_RESULT]),
    "ff_simulate_exit_status": (ctypes.c_int, [_RESULT]),
    "ff_simulate_process_count": (ctypes.c_uint32, [_RESULT]),
    "ff_simulate_json": (ctypes.c_char_p, [_RESULT, ctypes.c_uint32]),
    "ff_simulate_table": (ctypes.c_void_p, [_RESULT, ctypes.c_uint32, ctypes.c_bool]),
    "ff_simulate_free_text": (None, [ctypes.c_void_p]),
    "ff_simulate_counters": (ctypes.POINTER(_CounterInfo), [ctypes.POINTER(ctypes.c_uint32)]),
}


# ---- finding it ----


def _places() -> List[Path]:
    """Where the library may be, the first that is there is taken."""
    above = list(Path(__file__).resolve().parents)  # [0] is the package
    places = [folder / NAME for folder in above[2:4]]  # PREFIX/lib/python3/dist-packages/farfault
    places += [folder / "build" / "lib" / NAME for folder in above[2:3]]  # the source tree: python/farfault
    program = shutil.which("farfault")
    if program:
        places.append(Path(program).resolve().parent.parent / "lib" / NAME)
    return places


def _open() -> ctypes.CDLL:
    given = os.environ.get("FARFAULT_LIBRARY")
    tried: List[str] = []
    if given:
        path = Path(given)
        places = [path / NAME if path.is_dir() else path]
    else:
        places = [place for place in _places() if place.exists()] + [Path(NAME)]  # at last the dynamic linker's own places
    for place in places:
        try:
            return ctypes.CDLL(str(place))
        except OSError as error:
            tried.append(str(error))
    hint = "FARFAULT_LIBRARY names it" if given else ("install farfault, put the farfault of a build folder on PATH, or let FARFAULT_LIBRARY "
                                                      f"name {NAME}")
    raise NotInstalledError(f"{tried[-1]}; {hint}")


_library: Optional[ctypes.CDLL] = None
_lock = threading.Lock()


def library() -> ctypes.CDLL:
    """The library, loaded when it is first needed. NotInstalledError: it is not there, or of another version."""
    global _library
    with _lock:
        if _library is None:
            found = _open()
            for name, (returns, takes) in _FUNCTIONS.items():
                try:
                    function = getattr(found, name)
                except AttributeError:
                    raise NotInstalledError(f"{found._name}: has no {name}: it is not {NAME}") from None
                function.restype, function.argtypes = returns, takes
            if found.ff_simulate_version() != VERSION:
                raise NotInstalledError(f"{found._name}: is of version {found.ff_simulate_version()}, not {VERSION}")
            _library = found
        return _library


def library_file() -> Path:
    """The library's own file, whatever way it was found."""
    library()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            path = line.rstrip("\n").split(maxsplit=5)[-1]
            if "libfarfault-simulate.so" in path:
                return Path(path)
    raise NotInstalledError(f"{NAME}: is loaded from a file that is gone")


# ---- calling ----


def texts(words: Sequence[str]) -> Any:
    """The list as C has it, ended by NULL."""
    return (ctypes.c_char_p * (len(words) + 1))(*[os.fsencode(word) for word in words], None)


def check(status: int, error: _CallError, errors: str = "") -> None:
    if status:
        raised = _ERRORS.get(status, FailedError)(os.fsdecode(error.message))
        raised.errors = errors
        raise raised


def make_options(memory: Optional[str], machine: Optional[str], arguments: Sequence[str], history: bool, environment: Optional[Sequence[str]],
                 streams: Sequence[int]) -> Tuple[_Options, List[Any]]:
    """The options, and what must live as long as they do."""
    options = _Options(size=ctypes.sizeof(_Options), history=history)
    keep = [texts(arguments), texts(environment) if environment is not None else None, (ctypes.c_int * 3)(*streams)]
    options.memory = os.fsencode(memory) if memory is not None else None
    options.machine = os.fsencode(machine) if machine is not None else None
    options.arguments = ctypes.cast(keep[0], _TEXTS)
    if keep[1] is not None:
        options.environment = ctypes.cast(keep[1], _TEXTS)
    options.streams = ctypes.cast(keep[2], ctypes.POINTER(ctypes.c_int))
    return options, keep


def call(options: _Options, function: Callable[..., int], *before: Any, failed: Optional[Callable[[], bool]] = None) -> Tuple[int, _CallError]:
    """Calls the function with `before` and the error, in a thread of its own, so that Ctrl-C is seen while it waits: it ends what runs, and
    KeyboardInterrupt goes on. failed: asked about ten times a second; True ends what runs as well."""
    stop = threading.Event()
    error = _CallError()
    status: List[int] = []
    # an exception in here would be lost
    options.go_on = _GO_ON(lambda _context: not (stop.is_set() or (failed is not None and failed())))
    done = threading.Event()

    def work() -> None:
        try:
            status.append(function(*before, ctypes.byref(error)))
        finally:
            done.set()

    threading.Thread(target=work, name="farfault").start()
    try:
        done.wait()  # not Thread.join, which Ctrl-C makes believe that the thread has ended
    except BaseException:
        stop.set()
        while not done.is_set():
            try:
                done.wait()
            except KeyboardInterrupt:
                pass  # it takes five seconds at most
        raise
    return status[0], error
