"""Scoring a text: nats a token, bits a byte and perplexity; for BERT pseudo-perplexity and masked accuracy."""

from lookback.evaluation.causal import evaluate
from lookback.evaluation.masked import evaluate_masked
from lookback.evaluation.score import Score

__all__ = ["Score", "evaluate", "evaluate_masked"]
