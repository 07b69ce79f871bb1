"""Made corpora: the dependency that a model has to find is known, and so is every right answer.

Each maker is a pure function of its arguments.
"""

from lookback.data.made.ambiguous_word import SENSES, ambiguous_word
from lookback.data.made.ba_sentences import VERBS, ba_sentences
from lookback.data.made.made import Made, Question
from lookback.data.made.recall import associative_recall, copy
from lookback.data.made.three_values import three_roles, three_values

__all__ = [
    "SENSES",
    "VERBS",
    "Made",
    "Question",
    "ambiguous_word",
    "associative_recall",
    "ba_sentences",
    "copy",
    "three_roles",
    "three_values",
]
