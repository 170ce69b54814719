"""All test servers with a defect. Each module of this folder has the servers with one kind of defect."""

from importlib import import_module
from pkgutil import iter_modules

from staged.wrong.table import Wrong

WRONG: list[Wrong] = [
    one
    for module in sorted(one.name for one in iter_modules(__path__))
    for one in getattr(import_module(f"{__name__}.{module}"), "WRONG", ())
]
