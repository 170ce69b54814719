"""Stops for servers that cannot be changed: the transport of ``stopscan_clients`` behind a server of its own.

``stopscan-proxy UPSTREAM`` runs it, and so does ``python -m stopscan_clients.proxy``. It needs
``stopscan-clients[proxy]``.
"""

from stopscan_clients.proxy._app import Limits, proxy

__all__ = ["Limits", "proxy"]
