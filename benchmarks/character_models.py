"""GPT, LSTM and RNN of one size on tinyshakespeare: 2000 steps of 12×64 characters, scored on the whole held-out text.

nanoGPT's own script with the same shape and tokens, scored the same way (windows of 64, side by side), ends at 1.898.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

TEXT = Path(__file__).parent.parent.parent / "shared" / "data" / "tinyshakespeare" / "input.txt"
STEPS, BATCH, LENGTH = 2000, 12, 64


def main() -> None:
    """Train the three and print their held-out nats a character."""
    import lookback as lb

    if not TEXT.exists():
        print(f"skipped: {TEXT.name} of tinyshakespeare is not there")
        return
    print("| model | parameters | windows of 64 | all the context it can use | training tokens/s |")
    print("|---|---|---|---|---|")
    budget = None
    with tempfile.TemporaryDirectory() as folder:
        for family in ("gpt", "lstm", "rnn"):
            size = {"preset": "nanogpt-char-cpu"} if budget is None else {"parameters": budget}
            session = lb.train(
                TEXT, out=Path(folder) / family, model=family, steps=STEPS, batch=BATCH, length=LENGTH, seed=1, **size
            )
            record = session.record
            budget = budget or record["parameters"]
            plain = session.evaluate(TEXT, split="held-out", window=LENGTH, stride="window")
            # A Transformer's context is at its fullest when windows overlap; a recurrent state is simply carried on.
            whole = session.evaluate(TEXT, split="held-out", stride=8 if family == "gpt" else None)
            speed = record["tokens_seen"] / record["seconds"]
            print(
                f"| {family} | {record['parameters']:,} | {plain.nats_per_token:.4f} | {whole.nats_per_token:.4f} "
                f"| {speed:,.0f} |",
                flush=True,
            )
