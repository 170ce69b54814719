"""`python -m staged.faults` prints the table of wrong servers: kind, API and name, apart by tabs."""

from staged.faults import FAULTS

for fault in FAULTS:
    print(fault.kind, fault.api, fault.name, sep="\t")
