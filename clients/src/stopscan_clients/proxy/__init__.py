"""A proxy that adds exact stops to a server that cannot be changed.

``stopscan-proxy UPSTREAM`` or ``python -m stopscan_clients.proxy UPSTREAM`` runs it. Needs ``stopscan-clients[proxy]``.
"""

from stopscan_clients.proxy._app import Limits, proxy

__all__ = ["Limits", "proxy"]
