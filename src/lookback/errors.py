"""The one error that a person's mistake raises."""

from __future__ import annotations

from unicodedata import category

_LONGEST = 1000
_UNFIT = {"Cc", "Cs", "Zl", "Zp"}  # control characters, halves of a character, line breaks


class InputError(ValueError):
    """One sentence: what was got, what is allowed, what to do.

    ``template`` is the English sentence with ``{named}`` fields and ``values`` fills them; the command line looks the
    template up in its Chinese catalogue, so rooms below it never need to know the language. Values that a file may
    have given (names, options) are made fit for a line: no line break, no terminal's control codes, no end of length.

    >>> str(InputError("{got} is not a family; allowed: {allowed}", got="cnn", allowed="gpt, lstm"))
    'cnn is not a family; allowed: gpt, lstm'
    """

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = {name: _fit(value) for name, value in values.items()}
        super().__init__(template.format(**self.values))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.template, self.values))


def _fit(value: object) -> object:
    text = str(value)
    clean = "".join(c if category(c) not in _UNFIT else ascii(c)[1:-1] for c in text[:_LONGEST])
    clean = clean if max(len(text), len(clean)) <= _LONGEST else clean[:_LONGEST] + "…"
    return value if clean == text else clean


def _rebuild(template: str, values: dict[str, object]) -> InputError:
    return InputError(template, **values)
