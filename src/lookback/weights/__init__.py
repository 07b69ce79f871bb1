"""A folder <-> a model. Nothing is unpickled, and nothing a file says about its own size is believed."""

from lookback.weights.native import CONFIG, WEIGHTS, load, save, save_config, write_weights

__all__ = ["CONFIG", "WEIGHTS", "load", "save", "save_config", "write_weights"]
