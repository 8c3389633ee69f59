#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: test_farfault.py BUILD [TEST...]. What needs pandas or matplotlib is skipped, by name, where they are missing."""

import gc
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv.pop(1)).resolve()
VECTORADD = BUILD / "workloads" / "vectoradd"
sys.path.insert(0, str(SOURCE / "python"))
sys.dont_write_bytecode = True
os.environ["FARFAULT_LIBRARY"] = str(BUILD / "lib")

import farfault  # noqa: E402

has = {name: importlib.util.find_spec(name) is not None for name in ("pandas", "matplotlib")}
needs_pandas = unittest.skipUnless(has["pandas"], "no pandas here")
needs_matplotlib = unittest.skipUnless(has["matplotlib"], "no matplotlib here")


class Next(farfault.Policy):
    """The eight pages behind the faulting one: the plug-in of docs/policies.md."""

    def faulted(self, view, faults):
        for fault in faults:
            allocation = view.allocation(fault.address)
            begin = fault.address // 4096 * 4096 + 4096
            if allocation and begin < allocation.address + allocation.bytes:
                view.propose(begin, min(8 * 4096, allocation.address + allocation.bytes - begin))


class InOrder(farfault.Policy):
    """Evicts what came first, and asks of everything that there is to ask."""

    def __init__(self):
        self.order = {}

    def arrived(self, view, address, bytes):
        self.order[address] = bytes

    def left(self, view, address, bytes):
        self.order.pop(address, None)

    def evict(self, view, bytes):
        for address, size in self.order.items():
            block = view.block(address)
            page = 1 << (address - block.address) // 4096
            assert block.address == address // farfault.BLOCK_BYTES * farfault.BLOCK_BYTES
            assert block.valid & page and block.mapped & page and not block.valid & ~block.mapped
            assert view.last_use(address, size) <= view.now and view.blank_bytes(address, size) == 0
            assert view.next_allocation(0).number == 1 and view.next_allocation(1 << 60) is None and view.allocation(8) is None
            assert 0 <= view.random() < 1 << 64
            view.propose(address, size)
            bytes -= size
            if bytes <= 0:
                return


class Failing(farfault.Policy):
    def faulted(self, view, faults):
        raise RuntimeError("an idea that fails")


class Endless(farfault.Policy):
    """Never returns, until the test has ended."""

    begun, over = threading.Event(), threading.Event()

    def faulted(self, view, faults):
        self.begun.set()
        self.over.wait()


class Idle(farfault.Policy):
    """Says nothing that the pager does not do by itself."""

    def faulted(self, view, faults):
        view.propose(-5, 4096)  # nonsense costs time, no more
        view.propose(faults[0].address, 1 << 70)


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell without job control has it ignored in what it starts behind it
        cls.before = (os.environ.get("TMPDIR"), tempfile.tempdir)
        cls.folder = tempfile.TemporaryDirectory()
        os.environ["TMPDIR"] = tempfile.tempdir = cls.folder.name
        cls.trace = farfault.record([VECTORADD, "50000"], os.path.join(cls.folder.name, "a.fft"), machine="gtx480")

    @classmethod
    def tearDownClass(cls):
        gc.collect()  # a sweep's temporary database goes with its object
        left = sorted(os.listdir(cls.folder.name))
        cls.folder.cleanup()
        tempfile.tempdir = cls.before[1]
        os.environ.pop("TMPDIR") if cls.before[0] is None else os.environ.update(TMPDIR=cls.before[0])
        assert left == ["a.fft"], left  # nothing of a call stays behind


class Results(Case):
    def test_run(self):
        result = farfault.run(["sh", "-c", f"{VECTORADD} 50000; echo $WORD >&2; exit 7"], memory=["copy", farfault.manager("uvm", fault_us=9)],
                              machine="gtx480", environment={"WORD": "given"}, gpu_memory="1G")
        self.assertEqual(result.exit_status, 7)
        self.assertEqual([s.memory for s in result], ["copy", "uvm+fault_us=9"])
        self.assertEqual(len(result), 2)
        self.assertIn("PASSED", result.output)
        self.assertEqual(result.errors, "given\n")
        self.assertIn("gtx480 with 1.00 GiB", " ".join(result.notes))
        self.assertIn("far-faults", str(result))
        self.assertIn("kernels of", result.table(verbose=True).lower() + " kernels of")
        self.assertEqual(result["copy"]["faults"], 0)
        self.assertGreater(result["uvm+fault_us=9"]["faults"], 0)
        self.assertEqual(result[0].counters["time_ps"], round(result[0].time_us * 1e6))
        with self.assertRaisesRegex(KeyError, "demand: no memory manager of this result, which has copy"):
            result["demand"]
        with self.assertRaisesRegex(KeyError, "no counter"):
            result[0]["no_such"]

    def test_the_numbers_are_the_commands(self):
        path = os.path.join(self.folder.name, "b.json")
        subprocess.run([BUILD / "bin" / "farfault", "sim", self.trace.path, "--memory", "copy,demand,tbn+evict=fifo", "--gpu-memory", "75%",
                        "--json", path, "--quiet"], check=True)
        command = json.loads(Path(path).read_text())
        os.unlink(path)
        result = farfault.simulate(self.trace, memory=["copy,demand", farfault.manager("tbn", evict="fifo")], gpu_memory="75%")
        self.assertEqual(result.processes[0]["runs"], command["runs"])
        self.assertEqual(farfault.workload("vectoradd"), str(VECTORADD))
        self.assertEqual(self.trace.exit_status, 0)
        self.assertIsNotNone(result["copy"].error)  # has not enough memory

    def test_rows(self):
        result = self.trace.simulate(memory="copy,demand")
        kernels, allocations, rows = result.kernel_rows(), result.allocation_rows(), result.rows()
        self.assertEqual([(row["memory"], row["name"]) for row in kernels], [("copy", "vectoradd"), ("demand", "vectoradd")])
        self.assertEqual([row["bytes"] for row in allocations], [200000] * 6)
        self.assertEqual(rows[1]["faults"], sum(row["faults"] for row in allocations[3:]))
        self.assertEqual(rows[1]["faults"], kernels[1]["faults"])
        self.assertGreater(rows[1]["ratio"], 1)
        self.assertEqual({row["name"] for row in farfault.counters()} - set(rows[0]), set())

    def test_history(self):
        simulation = farfault.simulate(self.trace, memory="demand", history=True)[0]
        self.assertEqual(sum(row["faults"] for row in simulation.series_rows()), simulation["faults"])
        kernel, = simulation.event_rows("kernels")
        self.assertEqual(kernel["name"], "vectoradd")
        self.assertEqual([row["kind"] for row in simulation.event_rows("copies")], ["h2d", "h2d", "d2h"])
        with self.assertRaisesRegex(farfault.InvalidError, "no kind of event"):
            simulation.event_rows("wishes")
        with self.assertRaisesRegex(farfault.InvalidError, "no history was kept"):
            farfault.simulate(self.trace, memory="demand")[0].series_rows()

    def test_save_and_read(self):
        path = os.path.join(self.folder.name, "run.ffr")
        result = farfault.simulate(self.trace, memory="demand", history=True)
        result.save(path)
        again = farfault.read(path)
        self.assertEqual(again.processes, result.processes)
        self.assertEqual(str(again), str(result))
        os.unlink(path)
        with self.assertRaises(OSError):
            result.save("/nowhere/run.ffr")

    def test_the_same_twice(self):
        first, second = (farfault.run([VECTORADD, "50000"], memory="uvm,auto", prefetch="tbn").processes[0]["runs"] for _ in range(2))
        self.assertEqual(first, second)

    def test_threads(self):
        results = {}
        threads = [threading.Thread(target=lambda name=name: results.update({name: farfault.simulate(self.trace, memory=name)}))
                   for name in ("copy", "demand", "tbn")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({name: result[0].memory for name, result in results.items()}, {name: name for name in results})
        self.assertEqual(len(results), 3)


class Errors(Case):
    def test_errors(self):
        for error, text, call in [
                (farfault.NoProgramError, "nope: not found", lambda: farfault.run("nope")),
                (farfault.NoResultsError, "true did not use the virtual GPU", lambda: farfault.run(["true"])),
                (farfault.InvalidError, "argv is empty", lambda: farfault.run([])),
                (farfault.InvalidError, "no manager is named", lambda: farfault.simulate(self.trace, memory=[])),
                (farfault.InvalidError, "did you mean 'copy'", lambda: farfault.simulate(self.trace, memory="copi")),
                (farfault.InvalidError, "unrecognized option '--shape=3'", lambda: farfault.simulate(self.trace, shape=3)),
                (farfault.InvalidError, "fault_use", lambda: farfault.simulate(self.trace, set={"fault_use": 3})),
                (farfault.BadFileError, "no.fft: cannot be read", lambda: farfault.simulate("no.fft")),
                (farfault.BadFileError, "no.ffr: cannot open", lambda: farfault.read("no.ffr")),
                (farfault.BadFileError, "study.yaml:4:13", lambda: farfault.sweep(self.trace, memory="c", machine="gtx480")),
                (farfault.BadFileError, "dinner: no bundled workload", lambda: farfault.workload("dinner")),
                (farfault.BadFileError, "no such database", lambda: farfault.Sweep("no.db")),
                (farfault.BadFileError, "not a database", lambda: farfault.Sweep(self.trace.path)),
                (farfault.FailedError, "/nowhere", lambda: farfault.record([VECTORADD, "1000"], "/nowhere/a.fft")),
        ]:
            with self.subTest(text), self.assertRaises(error) as caught:
                call()
            self.assertIn(text, str(caught.exception))
            self.assertIsInstance(caught.exception, farfault.Error)

    def test_an_error_has_what_was_written(self):
        with self.assertRaises(farfault.NoResultsError) as caught:
            farfault.run(["sh", "-c", "echo why >&2; exit 3"])
        self.assertIn("why\n", caught.exception.errors)

    def python(self, code, **variables):
        environment = {**os.environ, "PYTHONPATH": str(SOURCE / "python"), "PYTHONDONTWRITEBYTECODE": "1", **variables}
        return subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_a_library_that_is_not_there(self):
        done = self.python("import farfault; farfault.release()", FARFAULT_LIBRARY="/nowhere/x.so")
        self.assertEqual(done.returncode, 1)
        self.assertIn("NotInstalledError: /nowhere/x.so: cannot open", done.stdout)
        self.assertIn("FARFAULT_LIBRARY", done.stdout)
        done = self.python("import farfault; farfault.release()", FARFAULT_LIBRARY="libc.so.6")
        self.assertIn("libc.so.6: has no ff_simulate_version", done.stdout)

    def test_show(self):
        done = self.python(f"import farfault; r = farfault.run(['{VECTORADD}', '1000'], memory='copy', show=True); print([r.output])")
        self.assertTrue(done.stdout.startswith("vectoradd: PASSED"), done.stdout)
        self.assertTrue(done.stdout.endswith("['']\n"), done.stdout)

    @unittest.skipIf(has["pandas"], "pandas is here")
    def test_without_pandas(self):
        result = farfault.simulate(self.trace, memory="copy")
        for call in (result.frame, result.kernels, result.allocations):
            with self.assertRaisesRegex(farfault.MissingPackageError, "needs pandas, which is not installed"):
                call()

    @unittest.skipIf(has["matplotlib"], "matplotlib is here")
    def test_without_matplotlib(self):
        with self.assertRaisesRegex(ImportError, "needs matplotlib, which is not installed"):
            farfault.simulate(self.trace, memory="copy").plot()


class Interrupted(Case):
    def test_interrupt(self):
        """Ctrl-C of a caller that waits: KeyboardInterrupt, and the program has ended."""
        mark = os.path.join(self.folder.name, "running")
        threading.Thread(target=self.interrupt_when, args=(mark,)).start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            farfault.run(["sh", "-c", f"echo $$ >{mark}; exec sleep 60"])
        self.assertLess(time.monotonic() - begun, 20)
        process = int(Path(mark).read_text())
        os.unlink(mark)
        with self.assertRaises(ProcessLookupError):
            os.kill(process, 0)

    def test_interrupt_of_an_endless_policy(self):
        threading.Thread(target=lambda: (Endless.begun.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
        begun = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            farfault.simulate(self.trace, memory="replay", prefetch=Endless)
        Endless.over.set()
        self.assertLess(time.monotonic() - begun, 20)

    def interrupt_when(self, mark):
        while not os.path.exists(mark) or not Path(mark).read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)


class Sweeps(Case):
    def test_sweep(self):
        sweep = farfault.sweep(self.trace, memory=["copy", farfault.manager("demand", write_back="overlapped")], machine=["gtx480", "h200"],
                               gpu_memory=["75%", "100%"], set={"fault_us": [5, 20]}, title="four by two")
        rows = sweep.rows()
        self.assertEqual(len(sweep), len(rows))
        refused = {(row["memory"], row["gpu_memory"]) for row in rows if row["state"] != "done"}
        self.assertIn(("copy", "75%"), refused)
        done = [row for row in rows if row["state"] == "done" and row["memory"] != "copy" and row["machine"] == "gtx480" and row["gpu_memory"] == "100%"]
        self.assertEqual([row["fault_us"] for row in done], [5, 20])
        self.assertLess(done[0]["time_us"], done[1]["time_us"])
        self.assertEqual(sweep.query("SELECT title FROM study"), [{"title": "four by two"}])
        self.assertEqual({row["name"] for row in sweep.kernel_rows()}, {"vectoradd"})
        self.assertEqual(len(sweep.allocation_rows()) % 3, 0)
        with self.assertRaisesRegex(farfault.BadFileError, "no such column"):
            sweep.query("SELECT wishes FROM results")
        with self.assertRaisesRegex(farfault.BadFileError, "readonly"):
            sweep.query("DELETE FROM points")
        with self.assertRaisesRegex(farfault.InvalidError, "policies in Python are for"):
            farfault.sweep(self.trace, memory="replay", machine="h200", prefetch=Next)

    def test_database_that_stays(self):
        path = os.path.join(self.folder.name, "kept.db")
        first = farfault.sweep(self.trace, memory="copy", machine="gtx480", database=path)
        second = farfault.sweep(self.trace, memory=["copy", "ideal"], machine="gtx480", database=path)
        self.assertEqual([row["memory"] for row in second.rows()], ["copy", "ideal"])
        self.assertEqual(first.rows(), second.rows())  # it is one database
        for name in os.listdir(self.folder.name):
            if name.startswith("kept.db"):
                os.unlink(os.path.join(self.folder.name, name))


class Policies(Case):
    def test_prefetcher(self):
        """The same policy in C gives the same numbers."""
        text = (SOURCE / "docs" / "policies.md").read_text()
        code = next(block.split("```")[0] for block in text.split("```c\n")[1:] if "next: the N pages" in block)
        folder = tempfile.mkdtemp()
        Path(folder, "next.c").write_text(code)
        plugin = os.path.join(folder, "next.so")
        subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", f"-I{SOURCE}/include", f"{folder}/next.c", "-o", plugin], check=True)
        result = farfault.simulate(self.trace, memory=["replay", farfault.manager("replay", prefetch=Next), farfault.manager("replay", prefetch=plugin)])
        shutil.rmtree(folder)
        none, python, c = (s.counters for s in result)
        self.assertEqual(result[1].memory, "replay+prefetch=python.so:Next")
        self.assertEqual(python, c)
        self.assertLess(python["faults"], none["faults"])

    def test_evictor(self):
        result = farfault.simulate(self.trace, memory=["demand", farfault.manager("demand", evict=InOrder)], gpu_memory="75%", machine="gtx480",
                                   set={"page_bytes": 4096})
        for simulation in result:
            self.assertIsNone(simulation.error)
        self.assertEqual(result[1].memory, "demand+evict=python.so:InOrder")
        self.assertTrue(result[1].complete)

    def test_while_the_program_runs(self):
        result = farfault.run([VECTORADD, "50000"], memory="replay", prefetch=Next)
        recorded = farfault.simulate(self.trace, memory="replay", prefetch=Next, machine="h200")
        self.assertEqual(result[0].counters, recorded[0].counters)

    def test_program_without_standard_files(self):
        """What it writes there does not go to the policy's process."""
        result = farfault.run([BUILD / "tests" / "programs" / "ends", "closed"], memory="replay", prefetch=Next)
        self.assertEqual(result.exit_status, 0)
        self.assertIsNone(result[0].error)

    def test_names(self):
        def another():
            return Idle()
        another.__name__ = "Next"
        result = farfault.simulate(self.trace, memory=[farfault.manager("replay", prefetch=maker) for maker in (Next, another, Idle)])
        self.assertEqual([s.memory.split(":")[1] for s in result], ["Next", "Next_2", "Idle"])
        self.assertEqual(result[1].counters, result[2].counters)

    def test_exception(self):
        threads = threading.active_count()
        for call in (lambda: farfault.simulate(self.trace, memory="replay", prefetch=Failing),
                     lambda: farfault.run([VECTORADD, "50000"], memory="replay", prefetch=Failing),
                     lambda: farfault.simulate(self.trace, memory="replay", prefetch=lambda: Failing.nothing)):
            with self.assertRaises((RuntimeError, AttributeError)):
                call()
        self.assertEqual(threading.active_count(), threads)

    def test_plugin_alone(self):
        plugin = BUILD / "lib" / "farfault" / "policies" / "python.so"
        with self.assertRaisesRegex(farfault.InvalidError, "it is for policies in Python"):
            farfault.simulate(self.trace, memory="replay", prefetch=f"{plugin}:Next")


class Frames(Case):
    @needs_pandas
    def test_frames(self):
        result = farfault.simulate(self.trace, memory="copy,demand", history=True)
        frame = result.frame().set_index("memory")
        self.assertEqual(frame.loc["demand", "faults"], result["demand"]["faults"])
        self.assertEqual(len(result.kernels()), 2)
        self.assertEqual(list(result.allocations()["bytes"]), [200000] * 6)
        self.assertEqual(result["demand"].series()["faults"].sum(), result["demand"]["faults"])
        self.assertEqual(list(result["demand"].events("copies")["kind"]), ["h2d", "h2d", "d2h"])
        sweep = farfault.sweep(self.trace, memory=["copy", "demand"], machine="gtx480")
        self.assertEqual(list(sweep.frame()["memory"]), ["copy", "demand"])
        self.assertEqual(len(sweep.kernels()), 2)
        self.assertEqual(len(sweep.allocations()), 6)

    @needs_matplotlib
    def test_plots(self):
        import matplotlib
        matplotlib.use("Agg")
        result = farfault.simulate(self.trace, memory="copy,demand", history=True)
        bars = result.plot("faults")
        self.assertEqual([bar.get_height() for bar in bars.patches], [0, result["demand"]["faults"]])
        self.assertEqual([text.get_text() for text in bars.get_xticklabels()], ["copy", "demand"])
        lines = result["demand"].plot("resident_bytes", "h2d_bytes")
        self.assertEqual([line.get_label() for line in lines.lines], ["resident_bytes", "h2d_bytes"])
        with self.assertRaisesRegex(farfault.InvalidError, "no series"):
            result["demand"].plot("wishes")
        sweep = farfault.sweep(self.trace, memory=["demand", "tbn"], machine="gtx480", set={"fault_us": [5, 20, 45]})
        axes = sweep.plot("fault_us")
        self.assertEqual([list(line.get_xdata()) for line in axes.lines], [[5, 20, 45]] * 2)
        with self.assertRaisesRegex(farfault.InvalidError, "no column"):
            sweep.plot("wishes")


class Installed(unittest.TestCase):
    def test_pip(self):
        """Into a folder by pip, without a network; then the library is found by the farfault on PATH."""
        if importlib.util.find_spec("pip") is None:
            self.skipTest("no pip here")
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check",
                                   "--target", folder, str(SOURCE / "python")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, done.stdout)
            environment = {name: value for name, value in os.environ.items() if name != "FARFAULT_LIBRARY"}
            environment.update(PYTHONPATH=folder, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}")
            code = "import farfault, importlib.metadata as m; print(farfault.__file__, farfault.release(), m.version('farfault'), farfault.__version__)"
            done = subprocess.run([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            version = next(line.split("VERSION ")[1].split()[0] for line in (SOURCE / "CMakeLists.txt").read_text().splitlines() if line.startswith("project(farfault"))
            self.assertEqual(done.stdout.split(), [os.path.join(folder, "farfault", "__init__.py"), version, version, version])


if __name__ == "__main__":
    unittest.main(verbosity=2)
