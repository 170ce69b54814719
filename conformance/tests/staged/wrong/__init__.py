"""All wrong servers. Each module of this folder has a table of one kind of them."""

from importlib import import_module
from pkgutil import iter_modules

from staged.wrong.table import Wrong

WRONG: list[Wrong] = [
    one
    for module in sorted(one.name for one in iter_modules(__path__))
    for one in getattr(import_module(f"{__name__}.{module}"), "WRONG", ())
]
