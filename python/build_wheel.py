# SPDX-License-Identifier: Apache-2.0
"""Makes the package's wheel: what pip asks of a build backend (PEP 517), for a package of Python files alone.

It needs nothing but Python, so that `pip install` works without a network, a compiler or setuptools. What it says of the package is in
pyproject.toml.
"""

import base64
import hashlib
import re
import zipfile
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def _said(key):
    """A text of pyproject.toml's [project]."""
    return re.search(rf'^{key} = "(.*)"$', (_HERE / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]


def _metadata():
    extras = re.findall(r'^(\w+) = \["(\w+)"\]$', (_HERE / "pyproject.toml").read_text(encoding="utf-8").split("optional-dependencies]")[1], re.M)
    lines = ["Metadata-Version: 2.1", f"Name: {_said('name')}", f"Version: {_said('version')}", f"Summary: {_said('description')}", "License: Apache-2.0",
             f"Requires-Python: {_said('requires-python')}"]
    for extra, package in extras:
        lines += [f"Provides-Extra: {extra}", f'Requires-Dist: {package}; extra == "{extra}"']
    return "\n".join(lines) + "\n"


def _write(folder, files):
    """The wheel of these files (name in it: bytes); its name. The same files give the same bytes."""
    name, information = f"farfault-{_said('version')}-py3-none-any.whl", f"farfault-{_said('version')}.dist-info"
    files = dict(files)
    files[f"{information}/METADATA"] = _metadata().encode()
    files[f"{information}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: farfault\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = f"{information}/RECORD"
    rows = [f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}" for path, data in files.items()]
    files[record] = ("\n".join(rows + [f"{record},,"]) + "\n").encode()
    with zipfile.ZipFile(Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    package = sorted(path for path in (_HERE / "farfault").iterdir() if path.suffix == ".py" or path.name == "py.typed")
    return _write(wheel_directory, {f"farfault/{path.name}": path.read_bytes() for path in package})


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return _write(wheel_directory, {"farfault.pth": f"{_HERE}\n".encode()})
