"""The one error that a person's mistake raises."""

from __future__ import annotations


class InputError(ValueError):
    """One sentence: what was got, what is allowed, what to do.

    ``template`` is the English sentence with ``{named}`` fields and ``values`` fills them; the command line looks the
    template up in its Chinese catalogue, so rooms below it never need to know the language.

    >>> str(InputError("{got} is not a family; allowed: {allowed}", got="cnn", allowed="gpt, lstm"))
    'cnn is not a family; allowed: gpt, lstm'
    """

    def __init__(self, template: str, /, **values: object) -> None:
        self.template = template
        self.values = values
        super().__init__(template.format(**values))

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.template, self.values))


def _rebuild(template: str, values: dict[str, object]) -> InputError:
    return InputError(template, **values)
