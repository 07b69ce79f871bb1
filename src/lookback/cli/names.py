"""``lookback names``: what of a model can be recorded."""

from __future__ import annotations

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "List the names of a model's activations with their shapes and what they take in memory."
EXAMPLE = "lookback names runs/tang --tokens 30"


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder, a GGUF file, or hf:owner/name.")),
    tokens: int = typer.Option(100, "--tokens", help=say("Length of the text that the memory is stated for.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from lookback.errors import InputError
    from lookback.inspection import activations, cost
    from lookback.session import load

    if tokens < 1:
        raise InputError("{name} is {got}; it must be at least 1", name="tokens", got=tokens)
    opened = load(model, device="cpu").model
    listed = [(one, cost(opened, [one], 1, tokens)) for one in activations(opened)]
    if as_json:
        print_json({"names": [{"name": one.name, "shape": one.shape, "bytes": size} for one, size in listed]})
        return
    for one, size in listed:
        console().print(f"{one.name:<36}[{one.shape}]  {size:>14,} B", markup=False)
