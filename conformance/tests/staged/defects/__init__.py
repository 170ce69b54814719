from staged.defects import (
    costs,
    finishes,
    isolation,
    lates,
    openai_forms,
    other_forms,
    requests,
    rules,
    texts,
)  # fmt: skip

DEFECTS = [
    *rules.DEFECTS,
    *texts.DEFECTS,
    *requests.DEFECTS,
    *finishes.DEFECTS,
    *openai_forms.DEFECTS,
    *other_forms.DEFECTS,
    *lates.DEFECTS,
    *costs.DEFECTS,
    *isolation.DEFECTS,
]
