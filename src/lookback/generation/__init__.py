"""Writing on from a prompt, one loop for every family that can; and filling in masks."""

from lookback.generation.embedding import Pooling, embed
from lookback.generation.filling import Fill, fill
from lookback.generation.generate import Generated, Sample, generate
from lookback.generation.sampling import Sampling, probabilities, sample
from lookback.generation.stopping import TextStream

__all__ = [
    "Fill",
    "Generated",
    "Pooling",
    "Sample",
    "Sampling",
    "TextStream",
    "embed",
    "fill",
    "generate",
    "probabilities",
    "sample",
]
