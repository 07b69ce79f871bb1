"""A session: a model, its tokenizer and its folder. The one place where text meets ids."""

from lookback.session.conversation import Conversation
from lookback.session.export import export
from lookback.session.run import RunOptions, train
from lookback.session.session import Fill, Session, load

__all__ = ["Conversation", "Fill", "RunOptions", "Session", "export", "load", "train"]
