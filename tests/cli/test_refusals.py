"""Bad input: one clear sentence, exit code 2, and everything left as it was."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import Run, refusal, tree

FILES = {
    "verse.txt": "床前明月光，疑是地上霜。\n举头望明月，低头思故乡。\n" * 30,
    "other.txt": "白日依山尽，黄河入海流。\n欲穷千里目，更上一层楼。\n" * 30,
    "empty.txt": "",
    "blank.txt": " \n\t\n",
    "one.txt": "床",
    "two.txt": "床前",
    "binary.txt": "PK\x03\x04\0\0\x14\0",
    "folder/.hidden.txt": "床前明月光",
    "folder/picture.png": "no text",
    "broken/lines.jsonl": '{"text": "床前明月光"}\n{"text": \n',
    "fields/lines.jsonl": '{"title": "静夜思"}\n',
    "numbers/lines.jsonl": '{"text": 7}\n',
    "used/notes.txt": "mine",
}

# What is given to `train`, and what the sentence must say.
TRAIN = [
    ("missing.txt", "missing.txt does not exist"),
    ("empty.txt", "empty.txt is empty"),
    ("blank.txt", "blank.txt has no text"),
    ("one.txt", "too small"),
    ("two.txt", "too small"),
    ("binary.txt", "binary.txt is a binary file"),
    ("gb.txt", "gb.txt is not utf-8 text at byte 0; name its encoding, for example --encoding gb18030"),
    ("folder", "folder holds no text"),
    ("nothing", "nothing holds no text"),
    ("broken", "line 2 of broken/lines.jsonl is not JSON"),
    ("fields", "line 1 of fields/lines.jsonl has no field text; name one that it has with --field: title"),
    ("numbers", "field text in line 1 of numbers/lines.jsonl is not a string"),
    ("/dev/null", "/dev/null is neither a file nor a folder"),
    ("verse.txt --encoding klingon", "klingon"),
    ("verse.txt --encoding utf-16", "verse.txt is not utf-16"),
    ("verse.txt --field body", "body"),
    ("tang --encoding gb18030", "tang is bundled"),
    ("verse.txt --model cnn", "cnn is not a model family; allowed: "),
    ("verse.txt --preset huge", "huge is not a preset"),
    ("verse.txt --preset nanogpt-char --model lstm", "a GPT's"),
    ("verse.txt --style gpt5", "gpt5 is not a style"),
    ("verse.txt --model rnn --style llama", "a style is a Transformer's"),
    ("verse.txt --tokenizer syllable", "syllable"),
    ("verse.txt --tokenizer folder", "folder has no tokenizer.json"),
    ("verse.txt --tokenizer bpe --vocabulary 10", "a vocabulary of 10 is too small"),
    ("verse.txt --tokenizer bpe --vocabulary -5", "a vocabulary of -5 is too small"),
    ("verse.txt --tokenizer bpe --sample-bytes 0", "0 bytes"),
    ("verse.txt --vocabulary 100", "vocabulary has no effect where tokenizer is character"),
    ("verse.txt --sample-bytes 1M", "sample_bytes has no effect"),
    ("verse.txt --tokenizer bpe --allow-unknown", "unknown has no effect where tokenizer is bpe"),
    ("verse.txt --hold-out random", "random is no way to hold text out"),
    ("verse.txt --hold-out document", "one document alone"),
    ("verse.txt --held-out-fraction 1.5", "1.5 is not between 0 and 1"),
    ("verse.txt --held-out-fraction nan", "nan is not between 0 and 1"),
    ("verse.txt --hold-out none --held-out-fraction 0.2", "fraction has no effect"),
    ("verse.txt --positions circular", "circular is not a kind of positions"),
    ("verse.txt --positions rotary --width 6 --heads 2", "head width must be even"),
    ("verse.txt --cell elman --model rnn", "elman is not a cell of rnn"),
    ("verse.txt --cell rnn_relu --model gpt", "gpt has no option cell"),
    ("verse.txt --forget-bias 1 --model gru", "forget_bias is an LSTM's"),
    ("verse.txt --heads 2 --model lstm", "lstm has no option heads"),
    ("verse.txt --context 32 --model gru", "gru has no option context"),
    ("verse.txt --width 30 --heads 4", "30 does not divide into 4 heads"),
    ("verse.txt --heads 0", "heads"),
    ("verse.txt --heads 4 --kv-heads 3", "4 heads cannot share 3 key/value heads"),
    ("verse.txt --layers -1", "layers is -1; it must be at least 1"),
    ("verse.txt --width -32", "-32"),
    ("verse.txt --context 0", "context is 0"),
    ("verse.txt --sliding-window 0", "sliding_window is 0"),
    ("verse.txt --model bert --sliding-window 5", "causal mask only"),
    ("verse.txt --tied-qk --kv-heads 1", "tied queries and keys"),
    ("verse.txt --dropout 2", "dropout is 2.0"),
    ("verse.txt --dropout nan", "dropout is nan"),
    ("verse.txt --parameters abc", "abc is not a number"),
    ("verse.txt --parameters 1M --width 64", "cannot both be set"),
    ("verse.txt --parameters 7", "within 2% of 7 parameters"),
    ("verse.txt --parameters 0", "within 2% of 0 parameters"),
    ("verse.txt --tokens abc", "abc is not a number"),
    ("verse.txt --tokens -100", "-100 is not a number"),
    ("verse.txt --tokens 0", "tokens is 0"),
    ("verse.txt --steps 0", "steps is 0"),
    ("verse.txt --steps -3", "steps is -3"),
    ("verse.txt --steps ten", "--steps"),
    ("verse.txt --steps 5 --minutes 1", "steps and minutes"),
    ("verse.txt --minutes -1", "minutes is -1"),
    ("verse.txt --minutes nan", "minutes is nan"),
    ("verse.txt --batch 0", "batch is 0"),
    ("verse.txt --micro-batch 0", "micro_batch is 0"),
    ("verse.txt --length 0", "length is 0"),
    ("verse.txt --length 65 --preset tiny", "65 is more than the model's context of 64"),
    ("verse.txt --length 5000 --model rnn", "one window needs 5001"),
    ("verse.txt --rate -1", "rate is -1"),
    ("verse.txt --rate fast", "--rate"),
    ("verse.txt --warmup 2", "warmup is 2"),
    ("verse.txt --decay steep", "steep is not a decay"),
    ("verse.txt --weight-decay -1", "weight_decay is -1"),
    ("verse.txt --clip 0", "clip is 0"),
    ("verse.txt --mask-rate 2 --model bert", "mask_rate is 2"),
    ("verse.txt --mask-rate 0.2 --model gpt", "mask_rate has no effect where model is gpt"),
    ("verse.txt --evaluate-every 0", "evaluate_every is 0"),
    ("verse.txt --save-every -1", "save_every is -1"),
    ("verse.txt --seed -1", "the seed is -1"),
    ("verse.txt --seed 18446744073709551616", "the seed is 18446744073709551616"),
    ("verse.txt --device quantum", "no device quantum"),
    ("verse.txt --resume", "there is no run to go on with in out"),
    ("verse.txt --out used", "used is not empty"),
    ("verse.txt --out verse.txt", "verse.txt"),
    ("verse.txt --out verse.txt/out", "verse.txt"),
    ("verse.txt --lang fr", "fr is not a language"),
    ("verse.txt --nonsense", "there is no option --nonsense"),
    ("verse.txt other.txt", "other.txt"),
    ("verse.txt --json=yes", "--json"),
    ("--model gpt", "FILE is missing"),
]

EVALUATE = [
    ("{gpt} missing.txt", "missing.txt does not exist"),
    ("{gpt} empty.txt", "empty.txt is empty"),
    ("{gpt} binary.txt", "binary.txt is a binary file"),
    ("{gpt} folder", "folder holds no text"),
    ("{gpt} english.txt", "'t' (U+0074) at position 0 is not in the vocabulary"),
    ("{gpt} one.txt --split held-out", "too small"),
    ("{gpt} verse.txt --split test", "test is not a split; allowed: all, train, held-out"),
    ("{gpt} verse.txt --window 0", "a window of 0 tokens is not possible; this model takes 1 to 64"),
    ("{gpt} verse.txt --window 65", "a window of 65 tokens"),
    ("{gpt} verse.txt --stride half", "half is not a stride"),
    ("{gpt} verse.txt --stride 0", "a stride of 0"),
    ("{gpt} verse.txt --stride 99", "a stride of 99 does not fit a window of 64"),
    ("{gpt} verse.txt --stride -1", "-1 is not a stride"),
    ("{rnn} verse.txt --stride 8", "carries its state"),
    ("{rnn} verse.txt --stride window", "carries its state"),
    ("{bert} verse.txt --stride 8", "side by side"),
    ("{gpt} verse.txt --batch-size 0", "batch size is 0"),
    ("{gpt} verse.txt --limit 0", "limit is 0"),
    ("{gpt} verse.txt --limit many", "many is not a number"),
    ("{gpt} verse.txt --device quantum", "no device quantum"),
    ("{gpt} verse.txt --encoding klingon", "klingon"),
    ("nothing verse.txt", "nothing"),
    ("missing verse.txt", "missing is not a model folder"),
    ("verse.txt verse.txt", "verse.txt is a file"),
    ("{gpt}", "TEXT is missing"),
]

GENERATE = [
    ("{gpt} 床*65", "the prompt has 65 tokens, more than this model's context of 64"),
    ("{gpt} hello", "'h' (U+0068) at position 0 is not in the vocabulary"),
    ("{gpt} \udce5", "lone surrogate"),
    ("{bert} 床前", "a bert read both sides"),
    ("{gpt} 床 --max-new-tokens -1", "new tokens is -1"),
    ("{gpt} 床 --temperature -1", "the temperature is -1"),
    ("{gpt} 床 --temperature nan", "the temperature is nan"),
    ("{gpt} 床 --temperature hot", "--temperature"),
    ("{gpt} 床 --top-k 0", "top-k is 0"),
    ("{gpt} 床 --top-p 0", "top-p is 0"),
    ("{gpt} 床 --top-p 1.1", "top-p is 1.1"),
    ("{gpt} 床 --min-p -1", "min-p is -1"),
    ("{gpt} 床 --repetition-penalty 0", "the repetition penalty is 0"),
    ("{gpt} 床 --samples 0", "samples is 0"),
    ("{gpt} 床 --seed -1", "the seed is -1"),
    ("{gpt} 床 --seed 18446744073709551616", "the seed is 18446744073709551616"),
    ("{gpt} 床 --stop=", "a stop string is empty"),
    ("{gpt} 床 --device quantum", "no device quantum"),
    ("missing 床", "missing is not a model folder"),
    ("{gpt}", "PROMPT is missing"),
]

FILL = [
    ("{bert} 床前明月光", "there is no [MASK] in the text"),
    ("{gpt} 床前[MASK]月光", "gpt"),
    ("{lstm} 床前[MASK]月光", "lstm"),
    ("{bert} 床前[MASK]moon", "'m' (U+006D)"),
    ("{bert} 床*64[MASK]", "65 tokens are more than this model's context of 64"),
    ("{bert} [MASK]光 --best 0", "0 fills"),
    ("{bert} [MASK]光 --best 5000", "5000 fills"),
    ("{bert} [MASK]光 --device quantum", "no device quantum"),
    ("missing [MASK]", "missing is not a model folder"),
    ("{bert}", "TEXT is missing"),
]

OTHERS = [
    ("write a poem", "there is no command write; see lookback --help"),
    ("--nonsense", "there is no option --nonsense; see lookback --help"),
    ("corpora --nonsense", "see lookback corpora --help"),
    ("models a b", "see lookback models --help"),
    ("demo --parameters abc", "abc is not a number"),
    ("demo --out demo --corpus missing.txt", "missing.txt does not exist"),
    ("demo --corpus verse.txt --out used", "used holds something else than a demo"),
    ("demo --corpus verse.txt --out verse.txt", "verse.txt holds something else than a demo"),
]

CASES = (
    [("train --out out --preset tiny --batch 2 " + given, said) for given, said in TRAIN]
    + [("evaluate " + given, said) for given, said in EVALUATE]
    + [("generate " + given, said) for given, said in GENERATE]
    + [("fill " + given, said) for given, said in FILL]
    + OTHERS
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with all kinds of files, and the working folder."""
    for name, contents in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(contents, encoding="utf-8")
    (tmp_path / "english.txt").write_text("the moon " * 50, encoding="utf-8")
    (tmp_path / "gb.txt").write_bytes(FILES["verse.txt"].encode("gb18030"))
    (tmp_path / "nothing").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def words(given: str, models: dict[str, Path]) -> list[str]:
    """The arguments: {gpt} is a model's folder, and 床*65 stands for 65 of them."""
    spelt = [word.format(**models) for word in given.split(" ")]
    return [word.replace("床*65", "床" * 65).replace("床*64", "床" * 64) for word in spelt]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("--steps 9", "has steps 4, not 9; a resumed run keeps its options"),
        ("--layers 3", "layers"),
        ("--model lstm", "has model gpt, not lstm"),
        ("--seed 2", "has seed 1, not 2"),
        ("--parameters 30k", "has parameters None, not 30000"),
        ("--rate 0.5", "rate"),
        ("--tokenizer bpe", "has tokenizer character, not bpe"),
        ("", "was begun with another text than other.txt is now"),
    ],
)
def test_a_run_is_not_gone_on_with_otherwise(
    run: Run, models: dict[str, Path], text: Path, place: Path, given: str, said: str
) -> None:
    before = tree(models["gpt"])
    source = text if given else "other.txt"
    assert said in refusal(run("train", source, "--out", models["gpt"], "--resume", *given.split()))
    assert tree(models["gpt"]) == before


def test_a_run_is_not_written_over(run: Run, models: dict[str, Path], text: Path) -> None:
    before = tree(models["gpt"])
    assert "gpt is not empty; choose another --out" in refusal(run("train", text, "--out", models["gpt"]))
    assert tree(models["gpt"]) == before


@pytest.mark.parametrize(("given", "said"), [("one.txt", "too small"), ("verse.txt --minutes 0", "minutes is 0")])
def test_a_demo_that_is_refused_leaves_the_earlier_one(run: Run, place: Path, given: str, said: str) -> None:
    (place / "demo" / "gpt").mkdir(parents=True)
    (place / "demo" / "gpt" / "config.json").write_text("{}", encoding="utf-8")
    before = tree(place)
    ended = run("demo", "--out", "demo", "--corpus", *given.split())
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.splitlines()[0] == "training: RNN" and said in ended.err.splitlines()[1]
    assert tree(place) == before


@pytest.mark.parametrize(
    ("given", "said"), CASES, ids=[given.encode("ascii", "replace").decode() for given, _ in CASES]
)
def test_bad_input_is_refused(run: Run, models: dict[str, Path], place: Path, given: str, said: str) -> None:
    before = tree(place)
    told = refusal(run(*words(given, models)))
    assert said in told
    assert tree(place) == before
