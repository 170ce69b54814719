from stopscan_conformance._apis._api import Api, End, Part, Request
from stopscan_conformance._apis._faults import short
from stopscan_conformance._apis.all import APIS

__all__ = ["APIS", "Api", "End", "Part", "Request", "short"]
