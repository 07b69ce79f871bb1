"""A GGUF file that is cut short, has wild sizes, or is not what it says: one sentence, quickly, without much memory."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from gguf import GGUFValueType, GGUFWriter
from gguf_files import reference, write
from hypothesis import given
from hypothesis import strategies as st

from lookback import load, weights
from lookback.errors import InputError
from lookback.weights.gguf import read_gguf

STRING, ARRAY, U32 = 8, 9, 4


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model = reference("llama", num_hidden_layers=1)
    return write(tmp_path_factory.mktemp("gguf") / "model.gguf", "llama", model)


def refused(path: Path, act: Callable[[Path], object] = weights.load) -> str:
    """The one sentence, with little memory used for it."""
    tracemalloc.start()
    try:
        with pytest.raises(InputError) as caught:
            act(path)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()
    said = str(caught.value)
    assert "\n" not in said
    assert len(said) < 1500
    return said


def put(folder: Path, content: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(content)
    return path


def text(said: str | bytes) -> bytes:
    raw = said if isinstance(said, bytes) else said.encode()
    return struct.pack("<Q", len(raw)) + raw


def header(tensors: int = 0, pairs: int = 0, *, magic: bytes = b"GGUF", version: int = 3) -> bytes:
    return magic + struct.pack("<IQQ", version, tensors, pairs)


def pair(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def tensor(name: str, *shape: int, kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def test_the_whole_file_opens(whole: Path, tmp_path: Path) -> None:
    weights.load(put(tmp_path, whole.read_bytes()))


@given(at=st.floats(0, 1, exclude_max=True))
def test_cut_anywhere(at: float, whole: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = put(tmp_path_factory.mktemp("cut"), whole.read_bytes()[: int(at * whole.stat().st_size)])
    assert "is not a whole GGUF file" in refused(path)


@given(at=st.floats(0, 1, exclude_max=True))
def test_cut_within_the_header(at: float, whole: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = put(tmp_path_factory.mktemp("cut"), whole.read_bytes()[: int(at * 3000)])
    assert "is not a whole GGUF file" in refused(path)


@given(at=st.integers(0, 2999), flipped=st.integers(1, 255), wide=st.booleans())
def test_bytes_of_the_header_changed_are_refused_or_harmless(
    at: int, flipped: int, wide: bool, whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(whole.read_bytes())
    content[at] ^= flipped
    if wide:
        content[at : at + 8] = b"\xff" * 8
    path = put(tmp_path_factory.mktemp("flipped"), bytes(content))
    for act in (weights.load, lambda p: weights.describe(weights.open_model(p)), load):
        try:
            act(path)
        except InputError as error:
            assert "\n" not in str(error)


@pytest.mark.slow
@given(where=st.lists(st.tuples(st.integers(0, 2999), st.binary(min_size=1, max_size=9)), min_size=1, max_size=4))
def test_pieces_of_the_header_overwritten(
    where: list[tuple[int, bytes]], whole: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = bytearray(whole.read_bytes())
    for at, piece in where:
        content[at : at + len(piece)] = piece
    try:
        weights.load(put(tmp_path_factory.mktemp("overwritten"), bytes(content)))
    except InputError as error:
        assert "\n" not in str(error)


HUGE = 2**60
DAMAGE = {
    "empty": b"",
    "three bytes": b"GGU",
    "magic alone": b"GGUF",
    "another magic": header(magic=b"GGJT"),
    "big endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
    "version 1": header(version=1),
    "version 0": header(version=0),
    "version 4": header(version=4),
    "text": "床前明月光".encode() * 100,
    "2^60 pairs": header(pairs=HUGE),
    "2^64 - 1 pairs": header(pairs=2**64 - 1),
    "2^60 tensors": header(tensors=HUGE),
    "a key of 2^60": header(pairs=1) + struct.pack("<Q", HUGE) + b"x" * 100,
    "a string of 2^63": header(pairs=1) + pair("a", STRING, struct.pack("<Q", 2**63)) + b"x" * 100,
    "a list of 2^60 numbers": header(pairs=1) + pair("a", ARRAY, struct.pack("<IQ", U32, HUGE)) + b"x" * 100,
    "a list of 2^60 strings": header(pairs=1) + pair("a", ARRAY, struct.pack("<IQ", STRING, HUGE)) + b"x" * 100,
    "a list of 2^64 - 1 bytes": header(pairs=1) + pair("a", ARRAY, struct.pack("<IQ", 0, 2**64 - 1)) + b"x" * 100,
    "a list of lists": header(pairs=1) + pair("a", ARRAY, struct.pack("<IQ", ARRAY, 1)) + b"\0" * 100,
    "lists in lists without end": header(pairs=1) + pair("a", ARRAY, struct.pack("<IQ", ARRAY, 1) * 100_000),
    "a value of type 13": header(pairs=1) + pair("a", 13, b"\0" * 100),
    "an alignment of 0": header(pairs=1) + pair("general.alignment", U32, struct.pack("<I", 0)) + b"\0" * 100,
    "an alignment of 2^32 - 1": header(pairs=1) + pair("general.alignment", U32, b"\xff" * 4) + b"\0" * 100,
    "an alignment of text": header(pairs=1) + pair("general.alignment", STRING, text("32")) + b"\0" * 100,
    "no dimensions": header(tensors=1) + tensor("a") + b"\0" * 100,
    "5 dimensions": header(tensors=1) + tensor("a", 1, 1, 1, 1, 1) + b"\0" * 100,
    "2^32 - 1 dimensions": header(tensors=1) + text("a") + b"\xff" * 200,
    "a dimension of 2^60": header(tensors=1) + tensor("a", HUGE) + b"\0" * 100,
    "dimensions that overflow 64 bits": header(tensors=1) + tensor("a", 2**32, 2**32, 2**32) + b"\0" * 100,
    "a dimension of 0": header(tensors=1) + tensor("a", 0) + b"\0" * 100,
    "an offset of 2^63": header(tensors=1) + tensor("a", 4, offset=2**63) + b"\0" * 100,
    "an offset of 2^64 - 1": header(tensors=1) + tensor("a", 4, offset=2**64 - 1) + b"\0" * 100,
    "a type of 999": header(tensors=1) + tensor("a", 4, kind=999) + b"\0" * 100,
    "a type that was removed": header(tensors=1) + tensor("a", 32, kind=4) + b"\0" * 100,
    "rows that are not whole blocks": header(tensors=1) + tensor("a", 33, kind=8) + b"\0" * 100,
    "overlapping tensors": header(tensors=2) + tensor("a", 8) + tensor("b", 8, offset=16) + b"\0" * 200,
    "the same place twice": header(tensors=2) + tensor("a", 8) + tensor("b", 8) + b"\0" * 200,
    "two tensors of one name": header(tensors=2) + tensor("a", 8) + tensor("a", 8, offset=32) + b"\0" * 200,
}


@pytest.mark.parametrize("content", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_file_that_cannot_be(content: bytes, tmp_path: Path) -> None:
    assert "is not a whole GGUF file" in refused(put(tmp_path, content), read_gguf)
    refused(tmp_path / "model.gguf")


def test_a_folder_a_missing_file_and_another_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").mkdir()
    refused(tmp_path / "a.gguf")
    assert "is not a model folder" in refused(tmp_path / "b.gguf")
    (tmp_path / "c.bin").write_bytes(header())
    assert "GGUF (.gguf) ones open" in refused(tmp_path / "c.bin")


NUMBERS = ["block_count", "embedding_length", "feed_forward_length", "attention.head_count", "attention.head_count_kv"]
NUMBERS += ["context_length", "attention.key_length", "rope.freq_base", "attention.layer_norm_rms_epsilon"]
NUMBERS += ["attention.sliding_window", "rope.dimension_count", "rope.scaling.factor"]
VALUES = [0, -1, 7, 10**9, 2**63 - 1, 1e300, float("nan"), float("inf"), "4", [4, 4], True]


def changed(folder: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]) -> Path:
    """A Llama's file with some of the metadata replaced, or added."""
    add = GGUFWriter.add_key_value
    left = dict(changes)

    def replaced(self: GGUFWriter, key: str, val: object, vtype: GGUFValueType, *rest: object, **more: object) -> None:
        if key in left:
            add(self, key, left[key], kind_of(left[key]), *rest, **more)
            del left[key]
        elif not any(key == other for other in changes):
            add(self, key, val, vtype, *rest, **more)

    finish = GGUFWriter.write_header_to_file

    def with_the_rest(self: GGUFWriter) -> None:
        for key, value in left.items():
            add(self, key, value, kind_of(value))
        finish(self)

    monkeypatch.setattr(GGUFWriter, "add_key_value", replaced)
    monkeypatch.setattr(GGUFWriter, "write_header_to_file", with_the_rest)
    return write(folder / "model.gguf", "llama", reference("llama", num_hidden_layers=1))


def kind_of(value: object) -> GGUFValueType:
    kinds = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING", list: "ARRAY"}
    return GGUFValueType[kinds[type(value)]]


@pytest.mark.parametrize("key", NUMBERS)
def test_metadata_that_cannot_be(key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in VALUES:
        path = changed(tmp_path, monkeypatch, {f"llama.{key}": value, "llama.rope.scaling.type": "linear"})
        monkeypatch.undo()
        try:
            weights.load(path)
        except InputError as error:
            assert "\n" not in str(error)
        else:
            assert type(value) is int and value in (0, 7, 10**9), value


@pytest.mark.parametrize("value", [5, "mamba", ["llama"], True, ""], ids=str)
def test_an_architecture_that_does_not_open(value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = changed(tmp_path, monkeypatch, {"general.architecture": value})
    monkeypatch.undo()
    assert "this version opens llama, qwen2" in refused(path)


def test_a_name_with_line_breaks_and_control_codes_stays_on_its_line(tmp_path: Path) -> None:
    for name in ("a\nb", "a\x1b[2Jb", "a\u2028b", "a" * 5000, "\r\n" * 4000):
        content = header(tensors=1) + tensor(name, 1, 1, 1, 1, 1) + b"\0" * 100
        said = refused(put(tmp_path, content), read_gguf)
        assert said.count("is not a whole GGUF file") == 1
        assert said.isprintable()


def test_no_architecture(tmp_path: Path) -> None:
    assert "holds a None model" in refused(put(tmp_path, header()))


@pytest.mark.parametrize("value", [[1], "mean", 9, True, 1.5], ids=str)
def test_a_pooling_that_cannot_be_does_not_break(
    value: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed(tmp_path, monkeypatch, {"llama.pooling_type": value})
    assert weights.open_model(path).pooling is None or value is True


def test_missing_and_unknown_tensors_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = GGUFWriter.add_tensor

    def other(self: GGUFWriter, name: str, *rest: object, **more: object) -> None:
        add(self, {"blk.0.ffn_up.weight": "blk.0.stranger.weight"}.get(name, name), *rest, **more)

    monkeypatch.setattr(GGUFWriter, "add_tensor", other)
    said = refused(write(tmp_path / "model.gguf", "llama", reference("llama")))
    assert "model.layers.0.mlp.up_proj.weight is missing" in said
    assert "blk.0.stranger.weight is unknown" in said


def test_a_tensor_of_another_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add = GGUFWriter.add_tensor

    def shorter(self: GGUFWriter, name: str, data: np.ndarray, **more: object) -> None:  # type: ignore[type-arg]
        add(self, name, data[:-1] if name == "output.weight" else data, **more)

    monkeypatch.setattr(GGUFWriter, "add_tensor", shorter)
    said = refused(write(tmp_path / "model.gguf", "llama", reference("llama")))
    assert "lm_head.weight is [36, 64] instead of [37, 64]" in said
