"""What a GPU would be given: the launches that a wrapper tells, and tensors that it refuses."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import specc
from specc.kernels import Kernel
from specc.targets.cuda import device
from specc.targets.cuda.device import prepare, run_on_device
from specc.targets.cuda.emit import emit
from specc.targets.cuda.run import run_text
from specc.targets.cuda.session import Planned
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

    def recorded(kernel: Kernel, text: str, tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
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

    from_handle = classmethod(lambda own, handle: own())


@pytest.mark.parametrize("shared_bytes", [0, 4096, 48 * 1024 - STATIC, 48 * 1024, 64 * 1024, 227 * 1024 - STATIC])
def test_shared_memory_beyond_48_kb_is_asked_for(shared_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = Driver()
    driver.run(monkeypatch, shared_bytes)
    assert driver.launched == 1


def test_shared_memory_that_a_device_has_not_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError, match="229376 bytes of dynamic shared memory on cuda:0: CUDA_ERROR_INVALID_VALUE"):
        Driver(most=99 * 1024).run(monkeypatch, 224 * 1024)
