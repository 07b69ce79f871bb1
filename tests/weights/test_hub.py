"""Hub names: the one thing that may ask a server, and one sentence whatever comes of it. A path never does."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from fnmatch import fnmatch
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import pytest
from reference_models import saved_reference

from lookback import load, weights
from lookback.errors import InputError
from lookback.weights import hub


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every way out fails, and is written down."""
    asked: list[str] = []

    def fail(*args: object, **options: object) -> NoReturn:
        asked.append(str(args))
        raise OSError("no network")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, fail)
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, fail)
    return asked


PATHS = [
    "no/such",
    "meta-llama/Llama-3.2-1B",
    "gpt2",
    "./gpt2",
    "hf",
    "bert-base-chinese",
    "HF:gpt2/gpt2",
    "http://a/b",
]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_not_there_asks_nobody(
    path: str, no_network: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr(hub, "fetch", lambda name: pytest.fail("a hub was asked"))
    with pytest.raises(InputError, match="is not a model folder; give one"):
        load(path, device="cpu")
    assert no_network == []


def test_a_folder_that_is_there_asks_nobody(no_network: list[str], tmp_path: Path) -> None:
    for name in ("gpt2", "bert encoder", "llama"):
        weights.load(saved_reference(name, tmp_path / name))
    (tmp_path / "gpt2" / "model.safetensors").unlink()
    with pytest.raises(InputError, match="is missing"):
        weights.load(tmp_path / "gpt2")
    assert no_network == []


@pytest.mark.parametrize(
    "name",
    ["hf:", "hf:gpt2", "hf:a/b/c", "hf:a b/c", "modelscope:qwen", "hf:/etc/passwd", "hf:../..", "hf:./.", "hf:a/.."],
)
def test_what_is_no_name(name: str, no_network: list[str]) -> None:
    with pytest.raises(InputError, match="is not a hub name; write hf:owner/name"):
        load(name)
    assert no_network == []


@pytest.mark.slow
def test_no_network_is_one_sentence(tmp_path: Path) -> None:
    """In a process of its own, because the library reads its settings when it is imported."""
    code = (
        "import socket\n"
        "def fail(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = socket.create_connection = fail\n"
        "import sys\n"
        "import lookback\n"
        "from lookback.errors import InputError\n"
        "try: lookback.load('hf:owner/name', device='cpu')\n"
        "except InputError as error: sys.stdout.write(str(error))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"HF_HOME": str(tmp_path), "PATH": "", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("hf:owner/name could not be had from the hub: ")
    assert "\n" not in ended.stdout
    assert "Traceback" not in ended.stderr


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "modelscope", None)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match="needs the package modelscope; pip install modelscope"):
        load("modelscope:Qwen/Qwen2.5-0.5B")
    with pytest.raises(InputError, match="needs the package huggingface_hub"):
        load("hf:Qwen/Qwen2.5-0.5B")


@pytest.mark.parametrize(("package", "scheme"), [("huggingface_hub", "hf"), ("modelscope", "modelscope")])
def test_what_is_asked_for_and_what_comes_back(
    package: str, scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No pickle is fetched: only what this version reads."""
    saved_reference("qwen3", tmp_path)
    asked: dict[str, Any] = {}
    module = ModuleType(package)

    def snapshot_download(repository: str, **options: Any) -> str:
        asked.update(options, repository=repository)
        return str(tmp_path)

    module.snapshot_download = snapshot_download  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, package, module)
    assert weights.fetch(f"{scheme}:owner/a-name_1.0") == tmp_path
    assert asked.pop("repository") == "owner/a-name_1.0"
    ((_, patterns),) = asked.items()

    def wanted(name: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in patterns)

    names = ["model.safetensors", "model-00001-of-00002.safetensors", "model.safetensors.index.json", "config.json"]
    names += ["tokenizer.json", "vocab.txt", "vocab.json", "merges.txt", "1_Pooling/config.json", "chat_template.jinja"]
    assert all(wanted(name) for name in names)
    others = ["pytorch_model.bin", "consolidated.safetensors", "original/consolidated.00.pth", "modeling.py", "a.gguf"]
    assert not any(wanted(name) for name in others)


def test_whatever_a_hub_raises_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (RuntimeError("first\nsecond"), ValueError(""), OSError(5, "gone"), KeyError("x")):
        module = ModuleType("huggingface_hub")

        def snapshot_download(repository: str, error: Exception = error, **options: Any) -> NoReturn:
            raise error

        module.snapshot_download = snapshot_download  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "huggingface_hub", module)
        with pytest.raises(InputError, match=r"could not be had from the hub: .+") as caught:
            weights.fetch("hf:owner/name")
        assert "\n" not in str(caught.value)


@pytest.fixture
def endpoint() -> Iterator[tuple[str, list[str]]]:
    """A server of the test's own that knows nothing and writes down what it is asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_the_endpoint_is_honoured(endpoint: tuple[str, list[str]], tmp_path: Path) -> None:
    url, asked = endpoint
    code = (
        "import sys, lookback\n"
        "from lookback.errors import InputError\n"
        "try: lookback.load('hf:owner/name', device='cpu')\n"
        "except InputError as error: sys.stdout.write(str(error))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"HF_HOME": str(tmp_path), "HF_ENDPOINT": url, "PATH": "", "OMP_NUM_THREADS": "1", "NO_PROXY": "*"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "could not be had from the hub" in ended.stdout
    assert [path for path in asked if path.startswith("/api/models/owner/name")]
