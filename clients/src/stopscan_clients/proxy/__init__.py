"""A proxy that adds exact stops to a server that cannot be changed.

``stopscan-proxy UPSTREAM`` or ``python -m stopscan_clients.proxy UPSTREAM`` runs it. Needs ``stopscan-clients[proxy]``.
"""

try:
    from stopscan_clients.proxy._app import Limits, proxy
except ModuleNotFoundError as error:
    if (error.name or "").startswith("stopscan"):
        raise
    message = f"the proxy needs {error.name}: pip install './clients[proxy]' in a checkout of stopscan"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["Limits", "proxy"]
