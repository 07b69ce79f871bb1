"""Text as data: corpora, packed token files, batches, and made corpora with a known dependency.

`lookback.data.batches` is imported by its own name, because it needs torch and the rest does not.
"""

from lookback.data.corpus import Corpus, open_corpus
from lookback.data.packed import Prepared, TokenFile, prepare

__all__ = ["Corpus", "Prepared", "TokenFile", "open_corpus", "prepare"]
