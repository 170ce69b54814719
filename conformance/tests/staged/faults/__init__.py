"""Wrong servers that were written before the cases: from what the space of requests lacked, and from public reports.

`FAULTS` is the table: each has a name, the kind of the rule that it breaks, and the API that shows it.
"""

from staged.faults import forms, options, places, shared, words

FAULTS = [*shared.FAULTS, *options.FAULTS, *places.FAULTS, *words.FAULTS, *forms.FAULTS]
