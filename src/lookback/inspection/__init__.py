"""Looking inside: named activations of every family."""

from lookback.inspection.names import Activation, activations, select
from lookback.inspection.record import BUDGET, Trace, cost, record

__all__ = ["BUDGET", "Activation", "Trace", "activations", "cost", "record", "select"]
