"""All wrong servers: each module of the folder has some."""

from importlib import import_module
from pkgutil import iter_modules

DEFECTS = [
    defect
    for module in sorted(one.name for one in iter_modules(__path__))
    for defect in getattr(import_module(f"{__name__}.{module}"), "DEFECTS", ())
]
