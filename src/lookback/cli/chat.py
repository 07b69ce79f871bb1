"""``lookback chat``: a conversation with a model that has a chat template."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from lookback.cli.language import say
from lookback.cli.output import console, print_json

HELP = "Hold a conversation with a model that was trained to (its chat template is used)."
EXAMPLE = "lookback chat hf:HuggingFaceTB/SmolLM2-135M-Instruct"


def command(
    model: str = typer.Argument(..., metavar="MODEL", help=say("A model folder, a GGUF file, or hf:owner/name.")),
    system: str = typer.Option(None, "--system", help=say("What the model is told first.")),
    message: str = typer.Option(None, "--message", help=say("Say this, print the answer and stop.")),
    max_new_tokens: int = typer.Option(512, "--max-new-tokens", help=say("The most tokens to write.")),
    temperature: float = typer.Option(0.7, "--temperature", help=say("0 always takes the likeliest token.")),
    top_p: float = typer.Option(0.9, "--top-p", help=say("Sample from the likeliest tokens that reach p together.")),
    seed: int = typer.Option(0, "--seed", help=say("Seed of the sampling.")),
    device: str = typer.Option("auto", "--device", help=say("cpu, cuda, mps or auto.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    from lookback.session import Conversation, load

    conversation = Conversation(load(model, device=device), system)

    def write(piece: str) -> None:
        sys.stdout.write(piece)
        sys.stdout.flush()

    def answer_to(text: str, seed: int, on_text: Callable[[str], None] | None) -> str:
        return conversation.say(
            text, max_new_tokens=max_new_tokens, temperature=temperature, top_p=top_p, seed=seed, on_text=on_text
        )

    if message is not None:
        answer = answer_to(message, seed, None if as_json else write)
        if as_json:
            print_json({"answer": answer, "messages": conversation.messages})
        else:
            write("\n")
        return
    console(error=True).print(say("Type a message and press Enter; an empty line or Ctrl-D ends."), style="dim")
    turn = 0
    while text := _read():
        answer_to(text, seed + turn, write)
        write("\n")
        turn += 1


def _read() -> str:
    try:
        return input("> ").strip()
    except EOFError:
        return ""
