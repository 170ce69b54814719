"""`python -m staged`: serves all staged servers, and prints their port."""

from __future__ import annotations

import asyncio

from staged.app import Staged, application
from staged.right import OTHERS, RIGHT
from staged.serving import serve
from staged.wrong import WRONG

asyncio.run(serve(application([Staged(), *OTHERS, *(one.staged for one in [*RIGHT, *WRONG])])))
