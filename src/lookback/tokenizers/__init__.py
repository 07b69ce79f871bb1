"""Text to ids and back: what was trained here, and the tokenizers of Hugging Face folders and GGUF files."""

from lookback.tokenizers.chat import ChatTemplate, Piece, encode_chat
from lookback.tokenizers.convention import END, MASK, UNKNOWN
from lookback.tokenizers.decoding import StreamDecoder
from lookback.tokenizers.learning import learn
from lookback.tokenizers.spans import Encoding, Span
from lookback.tokenizers.tokenizer import Tokenizer

__all__ = [
    "END",
    "MASK",
    "UNKNOWN",
    "ChatTemplate",
    "Encoding",
    "Piece",
    "Span",
    "StreamDecoder",
    "Tokenizer",
    "encode_chat",
    "learn",
]
