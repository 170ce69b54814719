"""Checks that a built wheel is small, contains only the package, and has no dependencies outside of extras."""

from __future__ import annotations

import sys
import zipfile
from email.parser import Parser
from pathlib import Path, PurePosixPath

LIMIT_BYTES = 1_000_000  # a wheel may have at most this many bytes, packed as ci/wheel and releases pack it
EXPECTED = {"stopscan/__init__.py", "stopscan/__main__.py", "stopscan/_stopscan.pyi", "stopscan/py.typed"}
SUFFIXES = {".py", ".pyi", ".so", ".pyd", ".typed"}  # no data files: those belong to the conformance kit


def faults(wheel: Path) -> list[str]:
    """Returns the problems of the wheel, one line each."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        sboms = [name for name in archive.namelist() if ".dist-info/sboms/" in name]
        metadata = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        requires = Parser().parsestr(archive.read(metadata).decode()).get_all("Requires-Dist") or []
    found = [f"{name} is missing" for name in sorted(EXPECTED - names)]
    if not sboms:
        found.append("the list of what the native module is made of (SBOM) is missing")
    found += [
        f"{name} does not belong in a wheel" for name in sorted(names) if PurePosixPath(name).suffix not in SUFFIXES
    ]
    found += [f"{name} is outside the package" for name in sorted(names) if not name.startswith("stopscan/")]
    found += [
        f"{name} is the kit's"
        for name in sorted(names)
        if name.startswith(("stopscan/conformance/", "stopscan/testing/"))
    ]
    found += [f"{line} is a dependency without an extra" for line in requires if "extra ==" not in line]
    if sum("_stopscan" in name and name.endswith((".so", ".pyd")) for name in names) != 1:
        found.append("there is not exactly one native module")
    if wheel.stat().st_size > LIMIT_BYTES:
        found.append(f"{wheel.stat().st_size} bytes are more than {LIMIT_BYTES}")
    return found


if __name__ == "__main__":
    wheel = Path(sys.argv[1])
    problems = faults(wheel)
    print(f"{wheel.name}: {wheel.stat().st_size} bytes", *problems, sep="\n")
    sys.exit(bool(problems))
