"""Text to ids and back: characters, words, byte-level BPE and WordPiece over the `tokenizers` library."""

from lookback.tokenizers.decoding import StreamDecoder
from lookback.tokenizers.learning import learn
from lookback.tokenizers.tokenizer import END, MASK, UNKNOWN, Encoding, Span, Tokenizer

__all__ = ["END", "MASK", "UNKNOWN", "Encoding", "Span", "StreamDecoder", "Tokenizer", "learn"]
