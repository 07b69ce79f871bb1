"""One file a family of names."""

from __future__ import annotations

from lookback.weights.families.bert import BERT
from lookback.weights.families.gpt2 import GPT2
from lookback.weights.families.llama import LLAMA
from lookback.weights.families.mistral import MISTRAL
from lookback.weights.families.qwen2 import QWEN2
from lookback.weights.families.qwen3 import QWEN3
from lookback.weights.families.starcoder2 import STARCODER2
from lookback.weights.table import Names

FAMILIES: tuple[Names, ...] = (GPT2, BERT, LLAMA, MISTRAL, QWEN2, QWEN3, STARCODER2)
