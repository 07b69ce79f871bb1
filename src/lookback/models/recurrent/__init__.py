"""Recurrent language models: RNN, LSTM and GRU."""

from lookback.models.recurrent.config import RecurrentConfig
from lookback.models.recurrent.model import RecurrentLM

__all__ = ["RecurrentConfig", "RecurrentLM"]
