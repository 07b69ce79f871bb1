"""Language models: one protocol, two architectures (Transformer, recurrent), five families."""

from lookback.models.language_model import FAMILIES, Family, LanguageModel
from lookback.models.recurrent import RecurrentConfig, RecurrentLM
from lookback.models.registry import build, configure
from lookback.models.state import HiddenState, KVCache, State
from lookback.models.transformer import Transformer, TransformerConfig

__all__ = [
    "FAMILIES",
    "Family",
    "HiddenState",
    "KVCache",
    "LanguageModel",
    "RecurrentConfig",
    "RecurrentLM",
    "State",
    "Transformer",
    "TransformerConfig",
    "build",
    "configure",
]
