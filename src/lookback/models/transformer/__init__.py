"""The Transformer: GPT-2, BERT, Llama and Qwen in shape, by configuration alone."""

from lookback.models.transformer.config import TransformerConfig
from lookback.models.transformer.model import Transformer

__all__ = ["Transformer", "TransformerConfig"]
