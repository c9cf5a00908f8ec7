"""What can be concluded from a run: the ledger (regret, calibration, advice) and the importance of parameters."""

from gpmi.analysis.descriptors import descriptor_shares
from gpmi.analysis.front import CONFIDENCE, Chosen, FrontAnalysis
from gpmi.analysis.importance import Importance, Importances, importances
from gpmi.analysis.ledger.front_ledger import FrontBands, FrontLedger

__all__ = [
    "CONFIDENCE",
    "Chosen",
    "FrontAnalysis",
    "FrontBands",
    "FrontLedger",
    "Importance",
    "Importances",
    "descriptor_shares",
    "importances",
]
