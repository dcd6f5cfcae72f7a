"""Runs a model file in a process of its own: `python -m specc.verify.runner FOLDER MODEL.py`.

The folder has `request.json` and arrays; what the model gives is written there as arrays and, last of all,
`answer.json`. Nothing is pickled. Bounds are set here, before the file is read; the clock is kept by the parent.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from copy import deepcopy
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from specc.oracle.arrays import Array
from specc.verify.lift import Lift

PROCESSES = ("os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.exec", "os.system", "subprocess.Popen")
"""Audit events of what starts another process, or becomes one."""
MINE = os.getpid()


class Refusal(Exception):
    """Why a file is not judged: a code, a message, and the line of the file, 0 for none."""

    def __init__(self, code: str, message: str, line: int = 0, key: str = "") -> None:
        super().__init__(message)
        self.values = {"code": code, "message": message, "line": line, "key": key}


class Guard:
    """Calls of the user's code: what it raises becomes a Refusal, and it stays one process."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.started = ""

    def watch(self) -> None:
        """From here on this process starts no other one."""
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: Any) -> None:
        if event in PROCESSES:
            self.started = self.started or event
            raise RuntimeError(f"a model file starts no other process ({event})")

    @contextmanager
    def __call__(self, what: str) -> Iterator[None]:
        """`what` is being called, as the message names it."""
        try:
            yield
        except Refusal:
            raise
        except BaseException as error:
            raise self._refusal(what, error) from None
        if os.getpid() != MINE:
            os._exit(0)
        self._alone()

    def _alone(self, line: int = 0) -> None:
        if self.started:
            raise Refusal("E532", f"it starts another process (`{self.started}`)", line)

    def _refusal(self, what: str, error: BaseException) -> Refusal:
        lines = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == self.path]
        line = lines[-1] if lines else 0
        if isinstance(error, SyntaxError) and error.filename == self.path:
            line = error.lineno if isinstance(error.lineno, int) else line
        text = "".join(traceback.format_exception_only(error)).strip()
        if isinstance(error, SyntaxError):
            text = f"SyntaxError: {error.msg}"
        if self.started:
            self._alone(line)
        if isinstance(error, SystemExit):
            return Refusal("E532", f"{what} ends the process: {text}", line)
        if isinstance(error, MemoryError) or "can't allocate memory" in text:
            return Refusal("E532", f"{what} takes more memory than it may", line)
        key = error.args[0] if isinstance(error, KeyError) and error.args else ""
        return Refusal("E530", f"{what} raises {text[:1000]}", line, key if isinstance(key, str) else "")


def bound(memory: int, seconds: int) -> None:
    """Limits of address space beyond what is mapped now, of CPU time, and of the size of a file; the system's own where
    those are lower."""
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    spent = resource.getrusage(resource.RUSAGE_SELF)
    cpu = int(spent.ru_utime + spent.ru_stime) + seconds + 1
    for what, most in (
        (resource.RLIMIT_AS, mapped + memory),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_FSIZE, memory),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(what)
        most = min(most, sys.maxsize if hard == resource.RLIM_INFINITY else hard)
        resource.setrlimit(what, (most, most))


def load(path: Path, guard: Guard) -> Callable[..., Any]:
    """The file's `build`."""
    sys.path.insert(0, str(path.parent))
    sys.dont_write_bytecode = True
    with guard("the file"):
        loader = SourceFileLoader("user_model", str(path))
        module = ModuleType(loader.name)
        module.__file__ = loader.path
        sys.modules[loader.name] = module
        loader.exec_module(module)
        build = getattr(module, "build", None)
    if not callable(build):
        raise Refusal("E530", "it defines no function `build(config, tensors)`")
    return build  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Sizes:
    """What is wanted of a model: tokens in the vocabulary, layers, and the width of the residual stream."""

    vocabulary: int
    layers: int
    width: int


class Session:
    """One draw of weights: the built model, and what it gives for each text."""

    def __init__(
        self,
        build: Callable[..., Any],
        guard: Guard,
        config: dict[str, Any],
        tensors: Mapping[str, Array],
        sizes: Sizes,
    ) -> None:
        self.guard, self.given, self.sizes = guard, tensors, sizes
        self.first: tuple[Array, Array] | None = None
        self.tensors = {name: torch.from_numpy(value.copy()) for name, value in self.given.items()}
        self.call = self._run("`build`", build, deepcopy(config), dict(self.tensors))
        if not callable(self.call):
            raise Refusal("E530", f"`build` returns {_kind(self.call)}, which cannot be called")

    def _run(self, what: str, call: Callable[..., Any], *args: Any) -> Any:
        with self.guard(what):
            found = call(*args)
        for name, tensor in self.tensors.items():
            self._kept(what, f"the tensor `{name}`", tensor, self.given[name])
        return found

    def _kept(self, what: str, name: str, tensor: torch.Tensor, given: Array) -> None:
        with self.guard(f"reading {name} after {what}"):
            if not np.array_equal(tensor.detach().numpy(), given):
                raise Refusal("E531", f"{what} changes {name} in place")

    def prefill(self, tokens: Array) -> dict[str, Array]:
        """`logits`, and `hidden0`, `hidden1`, … where they are given."""
        found = self._given("the model", self.call, tokens)
        with self.guard("reading what the model returns"):
            logits, hidden = found if isinstance(found, tuple) and len(found) == 2 else (found, None)
        arrays = {"logits": self._array("the logits", logits, (len(tokens), self.sizes.vocabulary))}
        return arrays if hidden is None else arrays | self._hidden(hidden, len(tokens))

    def _hidden(self, hidden: Any, count: int) -> dict[str, Array]:
        with self.guard("reading the hidden states"):
            states = list(hidden) if isinstance(hidden, list | tuple) else None
            wanted = self.sizes.layers + 1
            if states is None or len(states) != wanted:
                given = _kind(hidden) if states is None else len(states)
                help_ = f"{wanted} are wanted, one before layer 0 and one after each layer"
                raise Refusal("E531", f"the hidden states are {given}: {help_}")
        shape = count, self.sizes.width
        return {f"hidden{i}": self._array(f"the hidden states {i}", h, shape) for i, h in enumerate(states)}

    def _array(self, what: str, value: Any, shape: tuple[int, ...]) -> Array:
        with self.guard(f"reading {what}"):
            return _array(what, value, shape)

    def answer(self, tokens: Array, start: int) -> dict[str, Array]:
        """All arrays of a text; `decoded` where the model has `step`."""
        arrays, decoded = self.prefill(tokens), self.decode(tokens, start)
        self.first = self.first or (tokens, arrays["logits"])
        return arrays | ({} if decoded is None else {"decoded": decoded})

    def repeat(self) -> None:
        """Gives the first text again. Raises Refusal where something else comes out."""
        if self.first is not None and not np.array_equal(self.prefill(self.first[0])["logits"], self.first[1]):
            raise Refusal("E531", "the same tokens give other logits the second time")

    def _given(self, what: str, call: Callable[..., Any], tokens: Array, *rest: Any) -> Any:
        ids = torch.from_numpy(tokens.copy())
        found = self._run(what, call, ids, *rest)
        self._kept(what, "the tokens", ids, tokens)
        return found

    def decode(self, tokens: Array, start: int) -> Array | None:
        """The logits from `start` on, a token at a time; None for a model without `step`."""
        with self.guard("`step`"):
            step = getattr(self.call, "step", None)
        if step is None:
            return None
        if not callable(step):
            raise Refusal("E530", f"`step` is {_kind(step)}, which cannot be called")
        cache, rows = None, []
        cuts = [part for part in (tokens[:start], *np.split(tokens[start:], len(tokens) - start)) if len(part)]
        for part in cuts:
            found = self._given("`step`", step, part, cache)
            with self.guard("reading what `step` returns"):
                if not isinstance(found, tuple) or len(found) != 2:
                    raise Refusal("E531", f"`step` returns {_kind(found)}: a tuple (logits, cache) is wanted")
                logits, cache = found
            rows.append(self._array("the logits of `step`", logits, (len(part), self.sizes.vocabulary)))
        return np.concatenate(rows)[start:]


def _array(what: str, value: Any, shape: tuple[int, ...]) -> Array:
    if not isinstance(value, torch.Tensor):
        raise Refusal("E531", f"{what}: {_kind(value)} instead of a tensor")
    if value.dtype is not torch.float64:
        name = str(value.dtype).removeprefix("torch.")
        raise Refusal("E531", f"{what} are {name}: the weights are float64, and so is what is made of them")
    if value.layout is not torch.strided or value.device.type != "cpu":
        layout = str(value.layout).removeprefix("torch.")
        raise Refusal("E531", f"{what} are {layout} on the device {value.device}: a dense tensor on the CPU is wanted")
    array = value.detach().resolve_conj().resolve_neg().numpy()
    if array.shape != shape:
        raise Refusal("E531", f"{what} have shape {list(array.shape)} instead of {list(shape)}")
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        at = ", ".join(str(i) for i in bad[0])
        raise Refusal("E531", f"{what} are {array[tuple(bad[0])]} at [{at}]")
    return array.copy()


def _kind(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _load(path: Path) -> dict[str, Array]:
    with np.load(path, allow_pickle=False) as found:
        return {name: found[name] for name in found.files}


def answer(folder: Path, path: Path, guard: Guard) -> dict[str, Any]:
    """Writes all arrays, and gives what is to be said beside them."""
    request = json.loads((folder / "request.json").read_text())
    lift = Lift() if request["lift"] else None
    bound(request["memory"], request["seconds"])
    guard.watch()
    torch.set_num_threads(1)
    with nullcontext() if lift is None else lift(), torch.no_grad():
        build = load(path, guard)
        for draw, starts in enumerate(request["starts"]):
            tokens = _load(folder / f"tokens{draw}.npz")
            tensors = _load(folder / f"tensors{draw}.npz")
            session = Session(build, guard, request["config"], tensors, Sizes(**request["sizes"]))
            for n, start in enumerate(starts):
                arrays = session.answer(tokens[f"text{n}"], start)
                np.savez(folder / f"answer{draw}.{n}.npz", **arrays)  # type: ignore[arg-type]
            session.repeat()
    return {"lifted": None if lift is None else dict(lift.places)}


def main() -> None:
    """Ends the process at once: threads that the file has left behind are not waited for."""
    folder, path = Path(sys.argv[1]), Path(sys.argv[2])
    guard = Guard(path)
    try:
        # The file can break whatever runs it: nothing may end this process without a word.
        with guard("running it"):
            found = answer(folder, path, guard)
    except Refusal as refusal:
        found = {"refusal": refusal.values}
    with suppress(AttributeError, ValueError, OSError):
        sys.stdout.flush()
    if os.getpid() == MINE:
        (folder / "answer.part").write_text(json.dumps(found))
        os.replace(folder / "answer.part", folder / "answer.json")
    os._exit(0)


if __name__ == "__main__":
    main()
