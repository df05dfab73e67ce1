"""All kinds of findings of `dyn doctor` by code, in the order of a report."""

from dyn_core.reports.doctor.hint_kinds import HINTS
from dyn_core.reports.doctor.severe_kinds import SEVERE

CATALOGUE = {kind.code: kind for kind in (*SEVERE, *HINTS)}
