"""A model file that gives no answer is refused, with its own line, and harms nothing."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from specc.diagnostics import SpecError
from specc.verify.draw import draw_tokens, draw_weights, vocabulary
from specc.verify.judge import Text
from specc.verify.runner import Guard, Refusal, Session, Sizes, load
from specc.verify.user import MAX_PRINTED, Bounds, Run, run_file
from tests.verify.models import SEED, reduced

TOKENS = np.array([2, 0, 1, 2])
TENSORS = {"embed": np.arange(12.0).reshape(3, 4), "head": np.ones((3, 4))}
SIZES = Sizes(vocabulary=3, layers=1, width=4)
MODEL = """\
import torch

class Model:
    def __init__(self, w):
        self.w = w

    def __call__(self, tokens):
        h = self.w["embed"][tokens]
        return h @ self.w["head"].T, [h, h]

    def step(self, tokens, cache):
        return self(tokens)[0], (cache or 0) + len(tokens)

def build(config, tensors):
    return Model(tensors)
"""


def answers(folder: Path, text: str, name: str = "model.py") -> dict[str, np.ndarray]:  # type: ignore[type-arg]
    """What the file `text` gives for the small model, in this process."""
    path = folder / name
    path.write_text(text, encoding="utf-8")
    guard = Guard(path)
    session = Session(load(path, guard), guard, {"layers": 1}, TENSORS, SIZES)
    found = session.answer(TOKENS, 2)
    session.repeat()
    return found


def test_a_model_that_keeps_the_contract_is_answered(tmp_path: Path) -> None:
    found = answers(tmp_path, MODEL)
    assert {name: array.shape for name, array in found.items()} == {
        "logits": (4, 3), "hidden0": (4, 4), "hidden1": (4, 4), "decoded": (2, 3),
    }  # fmt: skip
    assert found["logits"].tolist() == (TENSORS["embed"][TOKENS] @ TENSORS["head"].T).tolist()
    assert found["decoded"].tolist() == found["logits"][2:].tolist()


@pytest.mark.parametrize("name", ["model", "model.txt", "model.so", "my model.v2"])
def test_a_model_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    assert answers(tmp_path, MODEL, name)["logits"].shape == (4, 3)


def test_views_with_a_bit_set_are_read(tmp_path: Path) -> None:
    view = MODEL.replace("return h @", "return torch._neg_view(-h) @").replace("[h, h]", "[torch._neg_view(-h), h]")
    assert answers(tmp_path, view)["hidden0"].tolist() == answers(tmp_path, MODEL)["hidden0"].tolist()


FORWARD, LOGITS = "return h @ self.w", '["head"].T, [h, h]'
SEALED = """
class Sealed(torch.Tensor):
    @classmethod
    def __torch_function__(cls, call, types, args=(), kwargs=None):
        if call is torch.Tensor.detach: raise ValueError("sealed")
        return super().__torch_function__(call, types, args, kwargs or {})
class Rest:
    pass
"""
REFUSED: dict[str, tuple[str, str, str, str, int]] = {
    "no build": ("def build", "def make", "E530", "defines no function `build", 0),
    "no callable": ("return Model(tensors)", "return 3", "E530", "`build` returns a int, which cannot be called", 0),
    "syntax": ("class Model:", "class Model", "E530", "the file raises SyntaxError: expected ':'", 3),
    "syntax error of its own": (
        "return Model(tensors)", "raise SyntaxError('no', (__file__, 'x', 1, ''))", "E530", "SyntaxError: no", 15,
    ),
    "import": ("import torch", "import torsh", "E530", "the file raises ModuleNotFoundError: No module named 't", 1),
    "build raises": ("return Model(tensors)", "return 1 / 0", "E530", "`build` raises ZeroDivisionError", 15),
    "call raises": (FORWARD, "return h[:, :2] @ self.w", "E530", "the model raises RuntimeError: mat1", 9),
    "message that hides": ("return Model(tensors)", "raise ValueError(chr(27) * 5000)", "E530", "`build` raises V", 15),
    "exception without text": (
        "return Model(tensors)",
        "raise type('E', (Exception,), {'__str__': lambda s: 1 / 0})()",
        "E530", "`build` raises", 15,
    ),
    "recursion": (FORWARD, "return self(tokens) or self.w", "E530", "the model raises RecursionError", 9),
    "missing tensor": ('["head"]', '["heads"]', "E530", "the model raises KeyError: 'heads'", 9),
    "exit": ("return Model(tensors)", "import sys; sys.exit(3)", "E532", "`build` ends the process: SystemExit: 3", 15),
    "memory": ("return Model(tensors)", "raise MemoryError", "E532", "`build` takes more memory than it may", 15),
    "no tensor": ("return h @", "return 3, [h, h]\n        return h @", "E531", "the logits: a int instead", 0),
    "nothing": ("return h @", "return None\n        return h @", "E531", "the logits: None instead of a tensor", 0),
    "shape": ("return h @", "h = h[:, None]\n        return h @", "E531", "shape [4, 1, 3] instead of [4, 3]", 0),
    "float32": (LOGITS, '["head"].T.float()', "E530", "the model raises RuntimeError", 9),
    "float32 logits": (
        LOGITS, '["head"].T * torch.ones((), dtype=torch.float32), [h.float(), h]', "E531", "are float32", 0,
    ),
    "bfloat16": (
        LOGITS, '["head"].bfloat16().T.double(), [h.bfloat16(), h]', "E531", "hidden states 0 are bfloat16", 0,
    ),
    "NaN": (LOGITS, '["head"].T.log() * float("nan"), [h, h]', "E531", "the logits are nan at [0, 0]", 0),
    "infinite": (LOGITS, '["head"].T / 0, [h, h]', "E531", "the logits are inf at [0, 0]", 0),
    "too few states": ("[h, h]", "[h]", "E531", "the hidden states are 1: 2 are wanted", 0),
    "states of another width": (
        "[h, h]", "[h, h[:, :2]]", "E531", "hidden states 1 have shape [4, 2] instead of [4, 4]", 0,
    ),
    "states that are none": ("[h, h]", "h.sum()", "E531", "the hidden states are a Tensor: 2 are wanted", 0),
    "step without cache": (", (cache or 0) + len(tokens)", "", "E531", "a tuple (logits, cache) is wanted", 0),
    "step of another shape": ("self(tokens)[0],", "self(tokens)[0][0],", "E531", "logits of `step` have shape [3]", 0),
    "tensor changed by build": (
        "return Model(tensors)", 'tensors["head"] += 1; return Model(tensors)', "E531",
        "`build` changes the tensor `head` in place", 0,
    ),
    "tensor changed by the call": ("h = self.w", 'self.w["embed"].neg_(); h = self.w', "E531", "the tensor `embed`", 0),
    "tokens changed": (
        "h = self.w", "tokens += 0 * tokens + 1 - 1; tokens[0] = 0; h = self.w", "E531", "the tokens in", 0,
    ),
    "module that looks nothing up": (
        "def build(config, tensors):\n    return Model(tensors)", "def __getattr__(name):\n    raise ValueError(name)",
        "E530", "the file raises ValueError: build", 15,
    ),
    "sparse logits": (
        "return h @", "return (h @ self.w['head'].T).to_sparse(), [h, h]\n        return h @", "E531",
        "the logits are sparse_coo on the device cpu: a dense tensor on the CPU is wanted", 0,
    ),
    "no values": ("[h, h]", "[h, h.to('meta')]", "E531", "the hidden states 1 are strided on the device meta: a d", 0),
    "tensor that cannot be read": (
        "[h, h]", "[h.as_subclass(Sealed), h]\n" + SEALED, "E530", "reading the hidden states 0 raises ValueError", 14,
    ),
    "list that cannot be read": (
        "[h, h]", "type('L', (list,), {'__iter__': lambda s: 1 / 0})()", "E530", "reading the hidden states raises", 9,
    ),
    "tuple that cannot be read": (
        "return h @", "return type('L', (tuple,), {'__len__': lambda s: 1 / 0})()\n        return h @",
        "E530", "reading what the model returns raises ZeroDivisionError", 9,
    ),
    "tensor taken away": (
        "return Model(tensors)", "tensors['head'].__class__ = Sealed; return Model(tensors)\n" + SEALED,
        "E530", "reading the tensor `head` after `build` raises ValueError: sealed", 20,
    ),
    "step that is no method": (
        "return Model(tensors)", "del Model.step; Model.step = 0.1; return Model(tensors)",
        "E530", "`step` is a float, which cannot be called", 0,
    ),
    "step that cannot be had": (
        "    def step", "    @property\n    def step(self): raise ValueError\n    def other",
        "E530", "`step` raises ValueError", 12,
    ),
    "another answer": (
        "h = self.w", 'self.n = getattr(self, "n", 0) + 1; h = self.n * self.w', "E531", "second time", 0,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_answer_is_refused(name: str, tmp_path: Path) -> None:
    old, new, code, message, line = REFUSED[name]
    assert MODEL.count(old) == 1
    with pytest.raises(Refusal) as caught:
        answers(tmp_path, MODEL.replace(old, new))
    assert caught.value.values["code"] == code
    assert message in caught.value.values["message"]
    assert caught.value.values["line"] == line
    assert len(caught.value.values["message"]) < 1100


def run(folder: Path, text: str, seconds: int = 60) -> Run:
    """Runs the file `text` for Qwen3 in a process of its own."""
    path = folder / "model.py"
    path.write_text(text, encoding="utf-8")
    model = reduced("qwen3_0_6b").spec.model
    tokens = draw_tokens(model, 3, (SEED,))
    return run_file(path, model, [draw_weights(model, (SEED, 0))], [[Text(0, tokens, 1)]], Bounds(seconds, 1 << 30))


FORK = "import os\ndef build(config, tensors):\n    try:\n        os.fork()\n    except RuntimeError:\n        pass\n"
WILD = {
    "never ends": ("def build(config, tensors):\n    while True: pass", "it has not ended after 4 s"),
    "ignores signals and sleeps": (
        "import signal, time\nsignal.pthread_sigmask(0, range(1, 32))\ntime.sleep(60)", "4 s",
    ),
    "leaves": ("import os\nos._exit(7)", "it ends the process itself, with status 7"),
    "leaves as if done": ("import os\nprint('bye', flush=True)\nos._exit(0)", "with status 0"),
    "kills itself": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "its process was ended by SIGSEGV"),
    "prints": ("while True: print('x' * 10000)", f"it prints more than {MAX_PRINTED:,} bytes"),
    "forks": (FORK, "it starts another process (`os.fork`)"),
    "starts a program": ("import subprocess\nsubprocess.run(['true'])", "another process (`subprocess.Popen`)"),
    "takes memory": ("import torch\nx = torch.zeros(1 << 40)", "the file takes more memory than it may"),
    "takes memory in Python": ("x = [0] * (1 << 33)", "the file takes more memory than it may"),
}  # fmt: skip
QUICK = ("never ends", "leaves as if done", "forks", "takes memory")


@pytest.mark.parametrize("name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in WILD])
def test_a_wild_file_is_stopped(name: str, tmp_path: Path) -> None:
    text, message = WILD[name]
    before = time.monotonic()
    with pytest.raises(SpecError) as caught:
        run(tmp_path, text, 4 if message.endswith("4 s") else 60)
    assert [d.code for d in caught.value.diagnostics] == ["E532"]
    assert message in str(caught.value)
    assert time.monotonic() - before < 60


def test_a_bound_past_that_of_the_system_stays_at_that() -> None:
    code = """
from resource import RLIMIT_AS, getrlimit
from specc.verify.runner import bound
bound(1 << 80, 1 << 80)
bound(1 << 40, 99)
most = getrlimit(RLIMIT_AS)
bound(1 << 50, 999)
assert getrlimit(RLIMIT_AS) == most, most
"""
    subprocess.run([sys.executable, "-c", code], check=True)


BREAKING = {
    "closes what it prints to": ("sys.stdout.close()\n    return lambda tokens: 3", "the logits: a int instead"),
    "breaks what runs it": (
        "numpy.savez = None\n    return lambda tokens: torch.zeros(3, config['vocab_size']).double()",
        "running it raises TypeError",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.slow) if "closes" in n else n for n in BREAKING])
def test_a_file_that_breaks_its_process_is_told_why(name: str, tmp_path: Path) -> None:
    body, message = BREAKING[name]
    with pytest.raises(SpecError) as caught:
        run(tmp_path, f"import sys, numpy, torch\ndef build(config, tensors):\n    {body}\n")
    assert message in str(caught.value)


def test_what_a_file_prints_does_not_stand_in_the_way(tmp_path: Path) -> None:
    text = (
        "import torch\nprint('hello')\ndef build(config, tensors):\n"
        "    return lambda t: torch.ones(3, config['vocab_size']).double()\n"
    )
    found = run(tmp_path, text)
    assert found.printed == "hello\n"
    assert (found.answers[0][0].trace.logits == np.ones((3, vocabulary(reduced("qwen3_0_6b").spec.model)))).all()
    assert found.answers[0][0].decode(np.zeros(3), 1) is None


def test_a_file_that_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    model = reduced("qwen3_0_6b").spec.model
    with pytest.raises(SpecError, match="cannot read .*: No such file"):
        run_file(tmp_path / "none.py", model, [{}], [[]])
