"""A folder or a file <-> a model. Nothing is unpickled, and nothing a file says about its own size is believed."""

from lookback.weights.describe import describe
from lookback.weights.hub import fetch, is_hub_name
from lookback.weights.huggingface import family_of, required_family
from lookback.weights.opening import Opened, load, open_model, save, save_config, save_weights
from lookback.weights.sentence import SentencePooling, write_pooling
from lookback.weights.store import CONFIG, WEIGHTS, open_weights, read_json, write_json, write_weights

__all__ = [
    "CONFIG",
    "WEIGHTS",
    "Opened",
    "SentencePooling",
    "describe",
    "family_of",
    "fetch",
    "is_hub_name",
    "load",
    "open_model",
    "open_weights",
    "read_json",
    "required_family",
    "save",
    "save_config",
    "save_weights",
    "write_json",
    "write_pooling",
    "write_weights",
]
