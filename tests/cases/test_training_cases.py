"""Public bugs of other tools that training can have (shared/CASES.md), each with the right value as the assertion."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from small_runs import CHARACTERS, SMALL, metrics, own_cache

from lookback.models import build, configure
from lookback.session import train
from lookback.training import checkpoint
from lookback.training.checkpoint import Progress

CAUSAL = ["rnn", "lstm", "gru", "gpt"]


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with own_cache(tmp_path_factory.mktemp("cache")):
        yield


def test_checkpoint_precision(tmp_path: Path) -> None:
    """minimind trainer_utils.py: a weight of 0.1 came back from a resume file as 0.0999755859375, its half."""
    model = build(configure("gru", 11, preset="tiny", width=8), seed=1)
    optimizer = torch.optim.AdamW(model.parameters())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(0.1)
            moments = {"step": torch.tensor(1.0), "exp_avg": parameter * 0.1, "exp_avg_sq": parameter * 1e-10}
            optimizer.state[parameter] = moments
    checkpoint.save(tmp_path, model, optimizer, Progress(step=1, seconds=0.1, recent_nats=0.1, best_nats=0.1))
    files = tmp_path / "checkpoint"
    tensors = [load_file(files / name) for name in ("model.safetensors", "optimizer.safetensors")]
    assert {tensor.dtype for file in tensors for tensor in file.values()} == {torch.float32}
    other = build(model.config, seed=2)
    resumed = torch.optim.AdamW(other.parameters())
    progress = checkpoint.load(tmp_path, other, resumed)
    assert (progress.seconds, progress.recent_nats, progress.best_nats) == (0.1, 0.1, 0.1)
    for parameter in other.parameters():
        assert set(parameter.flatten().tolist()) == {0.10000000149011612}  # 0.1 in fp32
        for name, value in optimizer.state[next(iter(model.parameters()))].items():
            assert resumed.state[parameter][name].flatten()[0] == value.flatten()[0]


@pytest.fixture(scope="module")
def chance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """6000 characters drawn from 16: whatever stood before, the next one costs ln 16 nats."""
    path = tmp_path_factory.mktemp("text") / "chance.txt"
    path.write_text("".join(random.Random(0).choices(CHARACTERS, k=6000)), encoding="utf-8")
    return path


@pytest.mark.parametrize("family", CAUSAL)
def test_future_leak(family: str, chance: Path, tmp_path: Path) -> None:
    """minGRU-pytorch 3, LLMs-from-scratch PR 1062: a loss of 0.003 in training, and soup when generating.

    Nothing that is causal can learn to foretell chance; and after training as before it, later tokens move nothing.
    """
    options = {**SMALL, "width": 32, "length": 16, "batch": 16, "evaluate_tokens": 600, "evaluate_every": 30}
    session = train(chance, out=tmp_path, model=family, steps=60, **options)
    for line in metrics(tmp_path):
        assert line.get("loss", line.get("nats_per_token")) > math.log(16) - 0.15
    ids = torch.randint(2, 18, (2, 20), generator=torch.Generator().manual_seed(0))
    with torch.inference_mode():
        before = session.model(ids)[0]
        for t in (0, 7, 18):
            changed = ids.clone()
            changed[:, t + 1 :] = (ids[:, t + 1 :] - 1) % 16 + 2
            after = session.model(changed)[0]
            assert torch.equal(after[:, : t + 1], before[:, : t + 1])
            assert not torch.equal(after[:, t + 1 :], before[:, t + 1 :])


@pytest.mark.parametrize("family", CAUSAL)
def test_what_was_learnt_is_what_is_generated(family: str, tmp_path: Path) -> None:
    """The other half of the same bugs: a low loss and generation that goes on with the text belong together."""
    line = "天地玄黄宇宙洪荒日月盈昃辰宿列张"
    (tmp_path / "text.txt").write_text(line * 40, encoding="utf-8")
    options = {**SMALL, "width": 32, "length": 16, "batch": 8, "evaluate_every": 100}
    session = train(tmp_path / "text.txt", out=tmp_path / "run", model=family, steps=100, **options)
    assert metrics(tmp_path / "run")[-2]["loss"] < 0.5
    written = session.generate(line[:6], max_new_tokens=20, temperature=0.0).samples[0].text
    assert written == (line * 3)[6:26]


HUB = """
import sys

ASKING = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "urllib.", "http.")

def refuse(event, arguments):
    if event.startswith(ASKING):
        raise SystemExit(f"a request for the net: {event} {arguments}")

sys.addaudithook(refuse)
import lookback as lb

text, out = sys.argv[1:]
for model, tokenizer in (("gpt", "bpe"), ("bert", "character"), ("lstm", "character")):
    run = f"{out}/{model}"
    lb.train(text, out=run, model=model, tokenizer=tokenizer, vocabulary=None if model != "gpt" else 270,
             preset="tiny", width=8, batch=2, length=8, steps=2)
    session = lb.load(run)
    session.evaluate(text, limit=20)
    print(session.fill("天[MASK]") if model == "bert" else session.generate("天地", max_new_tokens=3))
hub = {"huggingface_hub", "transformers", "requests", "httpx", "aiohttp"} & sys.modules.keys()
assert not hub, hub
print("no request")
"""


@pytest.mark.slow
def test_hub_calls(chance: Path, tmp_path: Path) -> None:
    """TransformerLens 754, 800: a local folder and no network, and yet a server was asked. Here nothing is even loaded
    that could ask one."""
    offline = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
    environment = {name: value for name, value in os.environ.items() if name not in offline}
    command = [sys.executable, "-c", HUB, str(chance), str(tmp_path)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.endswith("no request\n")
