"""A conversation: messages, written as the model's own chat template has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lookback.generation import Sampling, generate
from lookback.session.session import Session
from lookback.tokenizers import encode_chat


class Conversation:
    """``messages`` grow by a question and an answer with each `say`."""

    def __init__(self, session: Session, system: str | None = None) -> None:
        self.session = session
        self.messages: list[dict[str, Any]] = [] if system is None else [{"role": "system", "content": system}]

    def say(
        self,
        text: str,
        *,
        max_new_tokens: int = 512,
        temperature: float = 0.7,
        top_p: float | None = 0.9,
        seed: int = 0,
        on_text: Callable[[str], None] | None = None,
    ) -> str:
        """Say something and get the answer, streamed to ``on_text``.

        Raises InputError for a model without a chat template and for a conversation longer than the context; it is
        then as it was before.
        """
        asked = [*self.messages, {"role": "user", "content": text}]
        made = generate(
            self.session.model,
            self.session.tokenizer,
            [encode_chat(self.session.tokenizer, asked)],
            max_new_tokens=max_new_tokens,
            sampling=Sampling(temperature, top_p=top_p),
            seed=seed,
            end=self.session.ends,
            on_text=None if on_text is None else lambda row, piece: on_text(piece),
        )
        answer = made.samples[0].text
        self.messages = [*asked, {"role": "assistant", "content": answer}]
        return answer
