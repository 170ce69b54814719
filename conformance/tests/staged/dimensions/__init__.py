"""Wrong servers, each in one place of the space of requests: written from its dimensions, before the cases."""

from staged.dimensions import forms, looks, places, requests, state, times

MUTANTS = [*places.MUTANTS, *looks.MUTANTS, *requests.MUTANTS, *state.MUTANTS, *times.MUTANTS, *forms.MUTANTS]
