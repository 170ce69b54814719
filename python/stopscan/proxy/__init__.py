"""Stops for servers that cannot be changed: the transport of ``stopscan.clients`` behind a server of its own.

``python -m stopscan.proxy UPSTREAM`` runs it; needs ``stopscan[proxy]``.
"""

from stopscan.proxy._app import Limits, proxy

__all__ = ["Limits", "proxy"]
