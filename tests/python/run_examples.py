#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run_examples.py BUILD FILE [--update]: runs the Python code of a document or a notebook, in order, in an empty folder, and compares what it prints
with what the file shows: the ```text block right behind a ```python block, the outputs of a cell. Numbers may differ by a tenth (as in
tests/programs/tutorial.py). A frame or a chart is made, and not compared. Code that needs pandas or matplotlib is skipped, by name, where they
are missing. --update, or FARFAULT_GOLDEN=write: the file shows what was printed now."""

import ast
import base64
import contextlib
import importlib.util
import io
import json
import os
import sys
import tempfile
import traceback
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path[:0] = [str(SOURCE / "python"), str(SOURCE / "tests" / "programs")]
from tutorial import first_difference, updated  # noqa: E402

OPTIONAL = ("pandas", "matplotlib")


class Example:
    def __init__(self, name, code, shown, put):
        self.name, self.code = name, code
        self.shown = shown  # lines, or None: nothing is compared
        self.put = put  # (lines that were printed, the last value): into the file


def of_document(path):
    """Its examples, and what writes it back."""
    lines, found, i = path.read_text().split("\n"), [], 0
    while i < len(lines):
        if lines[i] != "```python":
            i += 1
            continue
        end = lines.index("```", i)
        shown, where = None, None
        if lines[end + 1:end + 2] == ["```text"]:
            close = lines.index("```", end + 1)
            shown, where = lines[end + 2:close], (end + 2, close)
        found.append(Example(f"line {i + 1}", "\n".join(lines[i + 1:end]), shown, lambda printed, _value, where=where, shown=shown: where and writes.append((where, updated(shown, printed)))))
        i = end + 1
    writes = []

    def save():
        for (begin, end), new in reversed(writes):
            lines[begin:end] = new
        path.write_text("\n".join(lines))
    return found, save


def cell_text(cell):
    """What a cell shows, as lines; None: a frame or a chart."""
    lines = []
    for output in cell["outputs"]:
        if "image/png" in output.get("data", {}) or "text/html" in output.get("data", {}):
            return None
        lines += "".join(output["text"] if output["output_type"] == "stream" else output["data"]["text/plain"]).split("\n")
        if lines and not lines[-1]:
            lines.pop()
    return lines


def of_notebook(path):
    notebook = json.loads(path.read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]

    def put(cell, number, printed, value):
        cell["execution_count"] = number
        cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": [line + "\n" for line in printed]}] if printed else []
        if hasattr(value, "figure"):
            image = io.BytesIO()
            value.figure.savefig(image, format="png", dpi=70, bbox_inches="tight", metadata={"Software": None})
            cell["outputs"] = [{"data": {"image/png": base64.b64encode(image.getvalue()).decode()}, "metadata": {}, "output_type": "display_data"}]
        elif hasattr(value, "to_html"):
            cell["outputs"] = [{"data": {"text/html": value.to_html().splitlines(True), "text/plain": repr(value).splitlines(True)}, "execution_count": number, "metadata": {},
                                "output_type": "execute_result"}]
    found = [Example(f"cell {i + 1}", "".join(cell["source"]), cell_text(cell), lambda printed, value, cell=cell, i=i: put(cell, i + 1, printed, value)) for i, cell in enumerate(cells)]
    return found, lambda: path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")


def run(code, names):
    """What it prints, with the last expression's value as a notebook shows it, and that value."""
    tree, last = ast.parse(code), None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = ast.Expression(tree.body.pop().value)
    out, value = io.StringIO(), None
    with contextlib.redirect_stdout(out):
        exec(compile(tree, "<example>", "exec"), names)
        if last is not None:
            value = eval(compile(last, "<example>", "eval"), names)
    is_object = hasattr(value, "figure") or hasattr(value, "to_html")
    text = out.getvalue() + (f"{value!r}\n" if value is not None and not is_object else "")
    return text.rstrip("\n").split("\n") if text else [], value


def missing_of(error):
    """The optional package whose lack is the error; None: it is another error."""
    if isinstance(error, ImportError):
        return next((name for name in OPTIONAL if name in str(error) and importlib.util.find_spec(name) is None), None)
    return None


def main():
    build, path = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    update = "--update" in sys.argv or os.environ.get("FARFAULT_GOLDEN") == "write"
    os.environ["FARFAULT_LIBRARY"] = str(build / "lib")
    os.environ["MPLBACKEND"] = "Agg"
    examples, save = (of_notebook if path.suffix == ".ipynb" else of_document)(path)
    names, passed, failed, skipped = {"__name__": "__main__"}, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for example in examples:
            try:
                printed, value = run(example.code, names)
            except Exception as error:
                missing = missing_of(error)
                skipped, failed = skipped + bool(missing), failed + (not missing)
                print(f"{path.name}: {example.name}: skipped: no {missing} here" if missing else f"{path.name}: {example.name}: failed:\n{traceback.format_exc()}")
                continue
            wrong = None if example.shown is None or update or hasattr(value, "to_html") else first_difference(example.shown, printed)
            if update:
                example.put(printed, value)
            failed, passed = failed + bool(wrong), passed + (not wrong)
            if wrong:
                print(f"{path.name}: {example.name}: {wrong}")
        names.clear()
        os.chdir("/")
    if update and not failed and not skipped:
        save()
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or passed < 4 else 0


sys.exit(main())
