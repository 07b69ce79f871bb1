"""``lookback models``: the models a person has, and the sizes one can be made in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "List the trained models below a folder with their held-out bits a byte, and the presets."
EXAMPLE = "lookback models runs"


def command(
    folder: str = typer.Argument("runs", metavar="FOLDER", help=say("Where to look.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from rich.markup import escape

    from lookback.models import FAMILIES
    from lookback.models.registry import PRESETS, STYLES

    found = [_described(path.parent) for path in sorted(Path(folder).glob("**/lookback.json"))]
    if as_json:
        print_json({"models": found, "families": list(FAMILIES), "presets": list(PRESETS), "styles": list(STYLES)})
        return
    for model in found:
        bits = model["held_out"] and model["held_out"]["bits_per_byte"]
        scored = say("not scored yet") if bits is None else say("held-out {bits} bits a byte", bits=f"{bits:.3f}")
        name = escape(model["name"])
        console().print(f"[bold]{name}[/bold]  {model['family']} · {model['parameters']:,} · {scored}")
    if not found:
        console().print(say("no models below {folder}; make one with lookback train", folder=folder), markup=False)
    for title, names in ((say("families"), FAMILIES), (say("presets"), PRESETS), (say("styles"), STYLES)):
        console().print(f"{title}: {', '.join(names)}", style="dim")


def _described(folder: Path) -> dict[str, Any]:
    try:
        record = json.loads((folder / "lookback.json").read_text(encoding="utf-8"))
        held_out = record.get("held_out")
        return {
            "name": str(folder),
            "family": str(record["family"]),
            "parameters": int(record["parameters"]),
            "held_out": held_out and {name: float(held_out[name]) for name in ("nats_per_token", "bits_per_byte")},
            "tokens_seen": record.get("tokens_seen"),
        }
    except (OSError, ValueError, AttributeError, KeyError, TypeError):  # A run of another program, or half a file.
        return {"name": str(folder), "family": "?", "parameters": 0, "held_out": None, "tokens_seen": None}
