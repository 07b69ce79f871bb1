"""Training: recipe, objective, loop, checkpoints."""

from lookback.training.heldout import HeldOut, held_out_score
from lookback.training.objective import Objective
from lookback.training.recipe import Recipe
from lookback.training.trainer import Evaluation, Event, Outcome, Report, Step, Trainer, Warned

__all__ = [
    "Evaluation",
    "Event",
    "HeldOut",
    "Objective",
    "Outcome",
    "Recipe",
    "Report",
    "Step",
    "Trainer",
    "Warned",
    "held_out_score",
]
