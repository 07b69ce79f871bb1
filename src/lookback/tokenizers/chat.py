"""Chat templates: a conversation -> the text, and the ids, that a model was tuned to read.

Templates are Jinja programs of whoever published the model. They run in Jinja's sandbox, with the names and filters
that transformers gives them, and what a person wrote never becomes a special token.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from lookback.errors import InputError
from lookback.tokenizers.tokenizer import Tokenizer

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

Message = Mapping[str, Any]

_LONGEST = 1_000_000  # characters of a rendered chat, beyond a multiple of what the messages have
_MOST_TURNS = 100_000  # of all loops over ranges together
_STRUCTURE = ("role", "type")  # What a template decides by, not what a person wrote.
_NONCE_DIGITS = 24


class Piece(NamedTuple):
    """A stretch of a rendered chat, and whether special tokens are read in it."""

    text: str
    special_tokens: bool


class ChatTemplate:
    """A template by its ``source``; ``specials`` are the names that must stay plain text inside messages.

    Raises InputError for a source that is no Jinja template.
    """

    def __init__(self, source: str, specials: Collection[str] = ()) -> None:
        from jinja2 import TemplateError

        try:
            self._template = _environment().from_string(source)
        except TemplateError as error:
            raise InputError("the chat template is no valid Jinja: {reason}", reason=_line(error)) from None
        self._names = re.compile("|".join(map(re.escape, sorted(specials, key=len, reverse=True))) or "(?!)")
        self._heads = {name[:stop] for name in specials for stop in range(1, len(name))}
        self._tails = {name[start:] for name in specials for start in range(1, len(name))}

    def render(
        self,
        messages: Sequence[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        **names: Any,
    ) -> list[Piece]:
        """The chat of ``messages``, each a mapping with a "role" and mostly a "content", in pieces.

        ``names`` are further variables (``bos_token``, ``enable_thinking``…). A special token's name inside a message
        is a piece of its own in which none is read. Raises InputError for what the template refuses, and where it
        changes or looks into a message so that such a name can't be kept apart.
        """
        self._check(messages)
        given = {"messages": [dict(message) for message in messages], "tools": tools}
        rest = {"documents": None, "add_generation_prompt": add_generation_prompt, **names}
        held = _Held()
        marked = {key: self._mark(value, held) for key, value in given.items()}
        rendered = held.split(self._run({**rest, **marked}))
        if held.texts and "".join(piece.text for piece in rendered) != self._run({**rest, **given}):
            raise InputError(
                "the chat template changes or looks into the messages, so {names} in them can't be kept plain text; "
                "take it out",
                names=", ".join(sorted(set(held.texts))),
            )
        return rendered

    def _check(self, messages: Sequence[Message]) -> None:
        for message in messages:
            role = message.get("role") if isinstance(message, Mapping) else None
            if not isinstance(role, str) or not re.fullmatch(r"[\w-]+", role):
                raise InputError(
                    "a message has the role {role}; give each message a role of one word, such as user", role=repr(role)
                )

    def _mark(self, value: Any, held: _Held) -> Any:
        """``value`` with every special token's name, and what may become one at an edge, replaced by a marker."""
        if isinstance(value, Mapping):
            return {
                self._mark(key, held): item if key in _STRUCTURE else self._mark(item, held)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self._mark(item, held) for item in value]
        if not isinstance(value, str):
            return value
        core = value.strip()
        first = next((n for n in range(len(core), 0, -1) if core[:n] in self._tails), 0)
        last = next((n for n in range(len(core) - first, 0, -1) if core[-n:] in self._heads), 0)
        middle = self._names.sub(lambda found: held.mark(found[0]), core[first : len(core) - last])
        before, _, behind = value.partition(core) if core else (value, "", "")
        return before + held.mark(core[:first]) + middle + held.mark(core[len(core) - last :]) + behind

    def _run(self, names: Mapping[str, Any]) -> str:
        parts: list[str] = []
        length = 0
        try:
            limit = _LONGEST + 8 * len(json.dumps(names, default=str))
            for part in self._template.generate(**names, range=_Turns()):
                parts.append(part)
                length += len(part)
                if length > limit:
                    raise OverflowError(f"it writes more than {limit:,} characters")
        except Exception as error:  # A template can raise whatever Python can.
            raise InputError("the chat template does not take these messages: {reason}", reason=_line(error)) from None
        return "".join(parts)


def encode_chat(
    tokenizer: Tokenizer,
    messages: Sequence[Message],
    *,
    add_generation_prompt: bool = True,
    tools: Sequence[Any] | None = None,
    **names: Any,
) -> list[int]:
    """The ids of a conversation by the tokenizer's own template; the template writes the beginning token, if any.

    They are those that transformers gives for messages without special tokens. Raises InputError where there is no
    template, and as `ChatTemplate.render` does.
    """
    templates = tokenizer.chat_templates
    source = templates.get("tool_use" if tools and "tool_use" in templates else "default")
    if source is None:
        raise InputError("this model has no chat template; it was not tuned to converse: use lookback generate")
    special = {f"{role}_token": tokenizer.token_text(token) for role, token in tokenizer.roles.items()}
    template = ChatTemplate(source, tokenizer.special_names)
    pieces = template.render(messages, add_generation_prompt=add_generation_prompt, tools=tools, **{**special, **names})
    return tokenizer.encode_pieces(pieces).ids


class _Held:
    """Texts taken out of messages before rendering; markers, digits that nobody can guess, stand for them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._nonce = "".join(secrets.choice("123456789") for _ in range(_NONCE_DIGITS))

    def mark(self, text: str) -> str:
        if not text:
            return ""
        self.texts.append(text)
        return f"{self._nonce}{len(self.texts) - 1:08d}"

    def split(self, rendered: str) -> list[Piece]:
        parts = re.split(rf"{self._nonce}(\d{{8}})", rendered)
        pieces = [
            Piece(self.texts[int(part)], False) if place % 2 else Piece(part, True) for place, part in enumerate(parts)
        ]
        return [piece for piece in pieces if piece.text]


class _Turns:
    """Jinja's ``range``, with one limit for all that a rendering makes."""

    def __init__(self) -> None:
        self._left = _MOST_TURNS

    def __call__(self, *bounds: int) -> range:
        turns = range(*bounds)
        self._left -= len(turns)
        if self._left < 0:
            raise OverflowError(f"its loops make more than {_MOST_TURNS:,} turns")
        return turns


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    """Jinja as transformers sets it up for chat templates."""
    from jinja2 import TemplateError, nodes
    from jinja2.exceptions import SecurityError
    from jinja2.ext import Extension
    from jinja2.parser import Parser
    from jinja2.sandbox import ImmutableSandboxedEnvironment
    from jinja2.utils import Namespace

    class Generation(Extension):
        """``{% generation %}`` marks what an assistant says, for training; here it is only passed through."""

        tags = {"generation"}  # noqa: RUF012

        def parse(self, parser: Parser) -> list[nodes.Node]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    class Guarded(Namespace):
        def __setitem__(self, name: str, value: Any) -> None:
            if name.startswith("_"):
                raise SecurityError(f"{name} can't be set")
            super().__setitem__(name, value)

    def raise_exception(message: str) -> None:
        raise TemplateError(message)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    environment.globals["namespace"] = Guarded
    return environment


def _to_json(value: Any, **options: Any) -> str:
    """Without the escapes for HTML that Jinja's own filter writes."""
    return json.dumps(value, **{"ensure_ascii": False, **options})


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
