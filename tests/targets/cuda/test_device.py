"""What a GPU would be given: the launches that a wrapper tells, and tensors that it refuses."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import specc
from specc.diagnostics import SpecError
from specc.kernels import Kernel
from specc.targets.cuda import device, host
from specc.targets.cuda.device import prepare, run_on_device
from specc.targets.cuda.emit import emit, symbol
from specc.targets.cuda.run import _Call, run_text
from specc.targets.cuda.session import Planned, call
from specc.targets.cuda.wrapper import arguments
from tests.targets.cuda.generated import operands, shipped
from tests.targets.triton.generated import strided

NORM = shipped("rmsnorm", H=1024, eps=1e-6)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_wrapper_tells_the_launches_that_it_makes(dtype: torch.dtype) -> None:
    tensors, text = operands(NORM, {"R0": 9}, dtype), emit(NORM)
    outputs, (told,), _ = prepare(NORM, text, tensors)
    _, trace = run_text(NORM, text, tensors)
    (made,) = trace.launches
    assert (told.grid, told.block, told.shared_bytes) == (made.grid, made.block, made.shared_bytes)
    assert made.kernel.startswith(f"void {told.kernel}(")
    pointers = [int.from_bytes(a, "little") for a in told.arguments[:3]]
    assert pointers == [tensors["x"].data_ptr(), tensors["w"].data_ptr(), outputs["y"].data_ptr()]
    assert 9 in [int.from_bytes(a, "little") for a in told.arguments if len(a) == 4]


def test_rows_off_the_boundaries_of_vectors_are_told_as_single_elements() -> None:
    tensors = operands(NORM, {"R0": 9})
    moved = {**tensors, "x": strided(tensors["x"], 5, 3)}
    (told,) = prepare(NORM, emit(NORM), moved)[1]
    assert told.kernel.endswith("<float, 1>")


def test_nothing_is_launched_for_no_rows() -> None:
    assert prepare(NORM, emit(NORM), operands(NORM, {"R0": 0}))[1] == ()


def test_a_run_goes_on_after_a_plan() -> None:
    tensors, text = operands(NORM, {"R0": 2}), emit(NORM)
    before = run_text(NORM, text, tensors)[0]["y"]
    prepare(NORM, text, tensors)
    assert torch.equal(run_text(NORM, text, tensors)[0]["y"], before)


def test_tensors_that_are_on_no_gpu_are_refused() -> None:
    with pytest.raises(ValueError, match="the tensors are on cpu, not on a GPU"):
        run_on_device(NORM, emit(NORM), operands(NORM, {"R0": 2}))


@pytest.mark.parametrize(("change", "told"), [
    (lambda t: {**t, "w": t["w"].double()}, "storage type|stored in"),
    (lambda t: {**t, "w": t["w"][:5]}, r"`w` has shape \[5\], expected \[1024\]"),
    (lambda t: {**t, "x": t["x"].t().contiguous().t()}, "the last axis of `x` is not contiguous"),
    (lambda t: {**t, "w": t["w"].to("meta")}, "the tensors are on cpu and meta"),
    (lambda t: {"x": t["x"]}, "`w` is missing"),
])  # fmt: skip
def test_tensors_that_do_not_fit_are_refused(change, told: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=told):
        prepare(NORM, emit(NORM), change(operands(NORM, {"R0": 2})))


class OnGpu(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cuda = True


def test_a_node_takes_tensors_of_a_gpu_as_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, torch.Tensor] = {}

    def recorded(kernel: Kernel, text: str, tensors: dict[str, torch.Tensor], **_: str) -> dict[str, torch.Tensor]:
        given.update(tensors)
        return prepare(kernel, text, tensors)[0]

    monkeypatch.setattr(device, "run_on_device", recorded)
    x = torch.zeros(3, 5376, dtype=torch.bfloat16).as_subclass(OnGpu)
    w = torch.ones(5376, dtype=torch.bfloat16).as_subclass(OnGpu)
    y = specc.load("google/gemma-4-31B").node("layers[*].input_norm").run("cuda", x=x, w=w)["y"]
    assert given["x"] is x and given["w"] is w
    assert (y.shape, y.dtype) == ((3, 5376), torch.bfloat16)


STATIC = 1024
"""Static shared memory of a kernel of the driver below, in bytes."""


@dataclass
class Driver:
    """Of a CUDA driver: shared memory, static and dynamic together, is 48 KB unless more was asked for."""

    most: int = 227 * 1024
    dynamic: int = 48 * 1024 - STATIC
    launched: int = 0

    def allow(self, attribute: Any, value: int, kernel: Any, device: Any) -> tuple[Any]:
        from cuda.bindings import driver

        assert attribute == driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        assert (kernel, int(device)) == ("handle", 0)
        if value + STATIC > self.most:
            return (driver.CUresult.CUDA_ERROR_INVALID_VALUE,)
        self.dynamic = value
        return (driver.CUresult.CUDA_SUCCESS,)

    def launch(self, stream: Any, config: Any, kernel: Any, *arguments: Any) -> None:
        assert stream is not None, "a null handle"
        assert config.shmem_size <= self.dynamic, "CUDA_ERROR_INVALID_VALUE"
        self.launched += 1

    def run(self, monkeypatch: pytest.MonkeyPatch, shared_bytes: int) -> None:
        import cuda.core
        from cuda.bindings import driver

        for name in ("Device", "Stream", "LaunchConfig"):
            monkeypatch.setattr(cuda.core, name, _Anything)
        monkeypatch.setattr(cuda.core, "launch", self.launch)
        monkeypatch.setattr(driver, "cuKernelSetAttribute", self.allow)
        monkeypatch.setattr(device, "_module", lambda *of: SimpleNamespace(handle="handle"))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda d: (9, 0))
        monkeypatch.setattr(torch.cuda, "current_stream", lambda d: SimpleNamespace(cuda_stream=0))
        device._launch("", Planned("kernel", (1, 1, 1), (32, 1, 1), shared_bytes, ()), torch.device("cuda", 0))


class _Anything:
    """A device, a stream, or the configuration of a launch."""

    def __init__(self, *positional: Any, **named: Any) -> None:
        self.__dict__.update(named)

    def set_current(self) -> None:
        """All launches are on one device."""

    from_handle = classmethod(lambda own, handle: own() if handle else None)


@pytest.mark.parametrize("shared_bytes", [0, 4096, 48 * 1024 - STATIC, 48 * 1024, 64 * 1024, 227 * 1024 - STATIC])
def test_shared_memory_beyond_48_kb_is_asked_for(shared_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.run(monkeypatch, shared_bytes)
    assert driver.launched == 1


def test_shared_memory_that_a_device_has_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="229376 bytes of dynamic shared memory on cuda:0: CUDA_ERROR_INVALID_VALUE"):
        Driver(most=99 * 1024).run(monkeypatch, 224 * 1024)


DECODE = shipped("decodeGQA", lead=0, D=40, heads=6, kv_heads=2, scale=1)
HEADS = 6


def decode(rows: int, keys: int, dtype: torch.dtype = torch.bfloat16) -> dict[str, torch.Tensor]:
    return operands(DECODE, {"B": rows, "S": keys}, dtype, indices={"seq_lens": [keys] * rows})


def word(data: bytes) -> int:
    return int.from_bytes(data, "little")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("rows", "keys"), [(1, 0), (1, 63), (4, 64), (4, 5000), (5, 5000), (33, 5000)])
def test_parts_of_the_keys_have_room_in_a_workspace_that_is_made_for_them(
    rows: int, keys: int, dtype: torch.dtype
) -> None:
    tensors = decode(rows, keys, dtype)
    _, (split, merge), (workspace,) = prepare(DECODE, emit(DECODE), tensors)
    splits = split.grid[2]
    assert splits == {0: 1, 63: 1, 64: 2}.get(keys, 32 if rows <= 4 else 8 if rows <= 32 and dtype.itemsize == 2 else 4)
    assert split.grid == (rows, 2, splits) and merge.grid == (rows, HEADS, 1)
    parts, start = rows * HEADS * splits, workspace.data_ptr()
    scratch = [start, start + 4 * parts * 40, start + 4 * parts * 41]
    assert workspace.dtype is torch.float32 and workspace.device == tensors["q"].device
    assert workspace.numel() == rows * HEADS * max(splits, split_count(rows, keys)) * 42 >= parts * 42
    assert [word(a) for a in split.arguments][-3:] == scratch
    assert [word(a) for a in merge.arguments][-4:] == [*scratch, splits]


def split_count(rows: int, keys: int) -> int:
    """The largest number of parts of any storage type."""
    return min(32 if rows <= 4 else 8 if rows <= 32 else 4, keys // 64 + 1)


def test_decode_attention_is_told_as_it_runs() -> None:
    tensors, text = decode(3, 70), emit(DECODE)
    told = prepare(DECODE, text, tensors)[1]
    made = run_text(DECODE, text, tensors)[1].launches
    assert [(t.grid, t.block, t.shared_bytes) for t in told] == [(m.grid, m.block, m.shared_bytes) for m in made]


@pytest.mark.parametrize("bytes_off", [None, 4, 8])
def test_a_workspace_that_vectors_cannot_be_stored_in_is_refused(bytes_off: int | None) -> None:
    library = host.load(host.build(emit(DECODE)))
    one = _Call(DECODE, decode(3, 70), library, symbol(DECODE), None)
    room = np.zeros(one.workspace.size + 8, np.float32)
    start = -(room.ctypes.data // 4) % 4
    given = ctypes.c_void_p(None if bytes_off is None else room.ctypes.data + 4 * start + bytes_off)
    values = [given if a.kind == "workspace" else v for a, v in zip(arguments(one.ready), one.values(), strict=True)]
    with pytest.raises(ValueError, match="the launch wrapper returned 1"):
        call(library, one.symbol, values, one.buffers())


def test_no_sequences_launch_nothing() -> None:
    outputs, launches, (workspace,) = prepare(DECODE, emit(DECODE), decode(0, 70))
    assert launches == () and outputs["o"].shape == (0, HEADS, 40) and workspace.numel() == 0


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.float32, torch.bool])
def test_an_index_of_another_type_is_refused(dtype: torch.dtype) -> None:
    tensors = decode(2, 70)
    with pytest.raises(ValueError, match="`seq_lens` is stored in torch.*, not in torch.int32 or torch.int64"):
        prepare(DECODE, emit(DECODE), {**tensors, "seq_lens": tensors["seq_lens"].to(dtype)})


def test_decode_attention_of_a_node_takes_tensors_of_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Planned] = []

    def recorded(kernel: Kernel, text: str, tensors: dict[str, torch.Tensor], **_: str) -> dict[str, torch.Tensor]:
        outputs, launches, _ = prepare(kernel, text, tensors)
        told.extend(launches)
        return outputs

    monkeypatch.setattr(device, "run_on_device", recorded)
    node = specc.load("google/gemma-4-31B").node("layers[5].attn.core")
    q, cache = torch.zeros(2, 32, 512).as_subclass(OnGpu), torch.zeros(2, 160, 4, 512)
    seq_lens = torch.full((2,), 160)
    found = node.run("cuda", phase="decode", q=q, k=cache, v=cache, seq_lens=seq_lens)
    assert found["o"].shape == (2, 32, 512)
    assert [one.grid for one in told] == [(2, 4, 3), (2, 32, 1)]


def test_an_array_among_tensors_of_a_gpu_is_refused() -> None:
    node = specc.load("google/gemma-4-31B").node("layers[*].input_norm")
    with pytest.raises(SpecError, match="E507.*`w` is no tensor, but others are tensors on a GPU"):
        node.run("cuda", x=torch.zeros(3, 5376).as_subclass(OnGpu), w=np.ones(5376))
