"""The tables of governance: cases of the constitution, and interventions of people."""

from governance.cases.models import Artifact, Case, CaseOfficer, Violation
from governance.interventions.models import CodeAttempt, Intervention

__all__ = ["Artifact", "Case", "CaseOfficer", "CodeAttempt", "Intervention", "Violation"]
