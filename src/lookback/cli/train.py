"""``lookback train``: a model from a person's text."""

from __future__ import annotations

import shlex
from typing import Any

import typer

from lookback.cli.language import say
from lookback.cli.output import count, print_json

HELP = "Train a language model on a text: a file, a folder of .txt, .md and .jsonl, or a bundled corpus by name."
EXAMPLE = "lookback train tang --model gpt --steps 500 --seed 1 --out runs/tang"


def command(
    source: str = typer.Argument(
        ..., metavar="FILE", help=say("A file, a folder, or a bundled corpus (lookback corpora).")
    ),
    out: str = typer.Option(..., "--out", help=say("The folder the model goes to.")),
    model: str = typer.Option(None, "--model", help=say("gpt, bert, rnn, lstm or gru."), show_default="gpt"),
    preset: str = typer.Option(
        None, "--preset", help=say("A size: tiny, small, nanogpt-char-cpu, nanogpt-char, gpt2."), show_default="small"
    ),
    style: str = typer.Option(None, "--style", help=say("A Transformer's body: gpt2, llama, qwen2, qwen3, bert.")),
    parameters: str = typer.Option(None, "--parameters", help=say("Size the model to a budget, such as 800k or 2M.")),
    layers: int = typer.Option(None, "--layers", help=say("Number of layers.")),
    heads: int = typer.Option(None, "--heads", help=say("Attention heads a layer.")),
    kv_heads: int = typer.Option(None, "--kv-heads", help=say("Key/value heads: fewer than heads is grouped-query.")),
    width: int = typer.Option(None, "--width", help=say("Width of the hidden vectors.")),
    head_width: int = typer.Option(None, "--head-width", help=say("Width of a head.")),
    mlp_width: int = typer.Option(None, "--mlp-width", help=say("Width inside the MLP.")),
    context: int = typer.Option(None, "--context", help=say("The most tokens the model can read at once.")),
    positions: str = typer.Option(None, "--positions", help=say("learned, sinusoidal, rotary or none.")),
    sliding_window: int = typer.Option(None, "--sliding-window", help=say("How far a position may read back.")),
    tied_qk: bool = typer.Option(
        None, "--tied-qk", help=say("Use one matrix for queries and keys."), show_default=False
    ),
    scaled: bool = typer.Option(
        None, "--scale/--no-scale", help=say("Divide attention scores by √H."), show_default=False
    ),
    tied_embeddings: bool = typer.Option(
        None, "--tied/--untied", help=say("Use the embedding as the output matrix."), show_default=False
    ),
    cell: str = typer.Option(None, "--cell", help=say("An RNN's cell: rnn_tanh or rnn_relu.")),
    forget_bias: float = typer.Option(None, "--forget-bias", help=say("Where an LSTM's forget gates start.")),
    dropout: float = typer.Option(None, "--dropout", help=say("Dropout, from 0 to 1.")),
    tokenizer: str = typer.Option(
        None, "--tokenizer", help=say("character, word, bpe, wordpiece, or a model folder."), show_default="character"
    ),
    vocabulary: int = typer.Option(None, "--vocabulary", help=say("Size of a learnt vocabulary."), show_default="4096"),
    unknown: bool = typer.Option(
        None, "--allow-unknown", help=say("Send unknown characters to an unknown token."), show_default=False
    ),
    sample_bytes: str = typer.Option(
        None, "--sample-bytes", help=say("How much text a vocabulary is learnt from."), show_default="5M"
    ),
    hold_out: str = typer.Option(None, "--hold-out", help=say("What is held out: position, document or none.")),
    fraction: float = typer.Option(None, "--held-out-fraction", help=say("How much is held out."), show_default="0.1"),
    encoding: str = typer.Option(None, "--encoding", help=say("The text's encoding."), show_default="utf-8"),
    text_field: str = typer.Option(None, "--field", help=say("The field of .jsonl lines."), show_default="text"),
    cross_documents: bool = typer.Option(
        None, "--cross-documents", help=say("Let a window read across documents."), show_default=False
    ),
    steps: int = typer.Option(None, "--steps", help=say("Stop after so many steps."), show_default="2000"),
    tokens: str = typer.Option(None, "--tokens", help=say("Stop after so many tokens.")),
    minutes: float = typer.Option(None, "--minutes", help=say("Stop after so many minutes.")),
    batch: int = typer.Option(None, "--batch", help=say("Windows a step.")),
    length: int = typer.Option(None, "--length", help=say("Tokens a window."), show_default="the context"),
    micro_batch: int = typer.Option(None, "--micro-batch", help=say("Windows at a time; gradients are added up.")),
    rate: float = typer.Option(None, "--rate", help=say("The highest learning rate."), show_default="0.001"),
    warmup: float = typer.Option(None, "--warmup", help=say("Part of the run in which the rate rises.")),
    decay: str = typer.Option(None, "--decay", help=say("How the rate falls: cosine, linear or none.")),
    weight_decay: float = typer.Option(None, "--weight-decay", help=say("AdamW's weight decay.")),
    clip: float = typer.Option(None, "--clip", help=say("The longest gradient.")),
    mask_rate: float = typer.Option(None, "--mask-rate", help=say("Share of tokens a BERT must guess.")),
    evaluate_every: int = typer.Option(None, "--evaluate-every", help=say("Steps between evaluations.")),
    evaluate_tokens: str = typer.Option(
        None,
        "--evaluate-tokens",
        help=say("Held-out tokens an evaluation reads (the last one ten times as many)."),
        show_default="20k",
    ),
    save_every: int = typer.Option(None, "--save-every", help=say("Steps between further checkpoints.")),
    seed: int = typer.Option(None, "--seed", help=say("Seed of everything random."), show_default="0"),
    resume: bool = typer.Option(False, "--resume", help=say("Go on from the last checkpoint, exactly.")),
    device: str = typer.Option("auto", "--device", help=say("cpu, cuda, mps or auto.")),
    as_json: bool = typer.Option(False, "--json", help=say("End with one JSON object on standard output.")),
) -> None:
    options: dict[str, Any] = dict(locals())
    for name in ("source", "out", "resume", "device", "as_json"):
        del options[name]
    for name in ("parameters", "tokens", "sample_bytes", "evaluate_tokens"):
        options[name] = count(options[name])
    from lookback.cli.output import console
    from lookback.cli.progress import TrainingDisplay, duration
    from lookback.session import train

    with TrainingDisplay() as display:
        session = train(
            source, out=out, resume=resume, device=device, report=display, notify=display.preparing, **options
        )
    record = session.record
    if as_json:
        names = ("family", "parameters", "tokens_seen", "seconds")
        scored = record["held_out"]
        held_out = scored and {name: scored[name] for name in ("nats_per_token", "bits_per_byte")}
        print_json({"out": out, **{name: record[name] for name in names}, "held_out": held_out, "end": record["end"]})
        return
    if record["end"] == "interrupted":
        template = "stopped at step {step} and saved; go on with: lookback train {source} --resume --out {out}"
        said = say(template, step=record["step"], source=shlex.quote(source), out=shlex.quote(out))
        console().print(said, markup=False)
        return
    console().print(
        say(
            "{out}: {family} of {parameters} parameters, {tokens} tokens in {time}{held_out}",
            out=out,
            family=record["family"],
            parameters=f"{record['parameters']:,}",
            tokens=f"{record['tokens_seen']:,}",
            time=duration(record["seconds"]),
            held_out=""
            if record["held_out"] is None
            else say("; held-out {bits} bits a byte", bits=f"{record['held_out']['bits_per_byte']:.3f}"),
        ),
        markup=False,
    )
