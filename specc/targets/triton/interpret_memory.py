"""The memory operations of Triton's interpreter, guarded.

Every address that an active lane touches must lie in the tensor its pointer was made from. Masked lanes
without `other` read NaN. Stores are logged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from specc.targets.triton import interpret_numeric as numeric
from specc.targets.triton.interpret_faults import MemoryFault, StorageArithmetic
from specc.targets.triton.interpret_numeric import Array
from specc.targets.triton.interpret_trace import Region, WriteLog

_REGION = "specc.region"


def is_bfloat16(handle: Any) -> bool:
    """Whether a handle holds the bits of bfloat16 values."""
    return bool(handle.dtype.scalar.name == "bf16")


def refuse_storage_type(*operands: TensorHandle) -> None:
    """Raises StorageArithmetic if an operand of arithmetic is bfloat16."""
    if any(is_bfloat16(operand) for operand in operands):
        raise StorageArithmetic("arithmetic on bfloat16: cast to float32 first")


def region_of(handle: Any) -> Region | None:
    """The tensor a pointer was computed from, if it is known."""
    region: Region | None = handle.attr.get(_REGION)
    return region


class GuardedMemory(InterpreterBuilder):  # type: ignore[misc]
    """One launch's memory. `regions` are the tensors it may touch, `log` takes its stores."""

    def __init__(self, regions: Sequence[Region], log: WriteLog) -> None:
        super().__init__()
        self.regions = tuple(regions)
        self.log = log
        self.other_given = False

    def pointer(self, region: Region, pointer_type: Any) -> TensorHandle:
        """The address of a tensor argument; what is computed from it may only reach into that tensor."""
        return TensorHandle(np.array([region.start], dtype=np.uint64), pointer_type, {_REGION: region})

    def create_addptr(self, ptr: TensorHandle, offset: TensorHandle) -> TensorHandle:
        width = np.uint64(max(1, ptr.get_element_ty().primitive_bitwidth // 8))
        steps = offset.data.astype(np.int64).view(np.uint64)
        return TensorHandle(ptr.data + steps * width, ptr.dtype, ptr.attr)

    def _locate(self, ptr: TensorHandle, mask: Array | None, width: int, verb: str) -> tuple[Region, Array] | None:
        """The tensor and the byte offsets that active lanes touch (None if no lane is active)."""
        addresses = ptr.data if mask is None else ptr.data[mask]
        if addresses.size == 0:
            return None
        region = region_of(ptr) or self._owner(int(addresses.flat[0]), verb)
        offsets = addresses - np.uint64(region.start)
        if int(offsets.max()) + width > region.size or (width > region.itemsize and (offsets % width).any()):
            self._out_of_bounds(region, addresses, width, verb)
        return region, offsets

    def _owner(self, address: int, verb: str) -> Region:
        """The tensor an address of unknown origin lies in."""
        for region in self.regions:
            if region.start <= address < region.start + region.size:
                return region
        raise MemoryFault(f"{verb} at address {address:#x}, which lies in no tensor argument", None, 0)

    def _out_of_bounds(self, region: Region, addresses: Array, width: int, verb: str) -> None:
        offsets = addresses.astype(np.int64) - region.start
        bad = (offsets < 0) | (offsets + width > region.size) | (offsets % min(width, region.itemsize) != 0)
        first = int(offsets[bad].flat[0]) if bad.any() else int(offsets.flat[0])
        element, elements = first // region.itemsize, region.size // region.itemsize
        raise MemoryFault(
            f"{verb} at element {element} of {region.argument}, which has {elements} "
            f"({int(bad.sum())} of {addresses.size} active lanes)",
            region.argument,
            element,
        )

    def create_load(self, ptr: TensorHandle, *policy: Any) -> TensorHandle:
        return self._load(ptr, None, None)

    def create_masked_load(
        self, ptrs: TensorHandle, mask: TensorHandle, other: TensorHandle | None, *policy: Any, **named: Any
    ) -> TensorHandle:
        active = None if mask.data.all() else np.broadcast_to(mask.data, ptrs.data.shape)
        return self._load(ptrs, active, other)

    def _load(self, ptrs: TensorHandle, active: Array | None, other: TensorHandle | None) -> TensorHandle:
        element = ptrs.get_element_ty()
        kind = numeric.numpy_type(element)
        found = self._locate(ptrs, active, kind.itemsize, "load")
        if active is None and found is not None:
            region, offsets = found
            return TensorHandle(region.view(kind).take(offsets // np.uint64(kind.itemsize)), element)
        values = self._inactive(ptrs.data.shape, kind, element, other)
        if found is not None:
            region, offsets = found
            values[active] = region.view(kind).take(offsets // np.uint64(kind.itemsize))
        return TensorHandle(values, element)

    def _inactive(self, shape: tuple[int, ...], kind: np.dtype[Any], element: Any, other: TensorHandle | None) -> Array:
        """What masked lanes read. Triton drops an `other` that is zero: `other_given` tells it from none."""
        if other is not None:
            return np.array(np.broadcast_to(other.data, shape), dtype=kind)
        if self.other_given:
            return np.zeros(shape, dtype=kind)
        return np.full(shape, numeric.poison(kind, element.name == "bf16"), dtype=kind)

    def create_store(self, ptr: TensorHandle, val: TensorHandle, *policy: Any) -> None:
        self._store(ptr, val, None)

    def create_masked_store(
        self, ptrs: TensorHandle, value: TensorHandle, mask: TensorHandle, *policy: Any, **named: Any
    ) -> None:
        self._store(ptrs, value, None if mask.data.all() else np.broadcast_to(mask.data, ptrs.data.shape))

    def _store(self, ptrs: TensorHandle, value: TensorHandle, active: Array | None) -> None:
        kind = numeric.numpy_type(ptrs.get_element_ty())
        found = self._locate(ptrs, active, kind.itemsize, "store")
        if found is None:
            return
        region, offsets = found
        values = np.broadcast_to(value.data, ptrs.data.shape)
        region.view(kind)[offsets // np.uint64(kind.itemsize)] = values if active is None else values[active]
        self._note(region, offsets, kind.itemsize, atomic=False)

    def _note(self, region: Region, offsets: Array, width: int, atomic: bool) -> None:
        self.log.add(region, offsets.astype(np.int64).ravel() + region.start, width, atomic)

    def create_atomic_rmw(self, rmwOp: Any, ptr: Any, val: Any, mask: Any, sem: Any, scope: Any) -> TensorHandle:
        refuse_storage_type(val)
        self._guard_atomic(ptr, None if mask.data.all() else np.broadcast_to(mask.data, ptr.data.shape))
        solid = (TensorHandle(np.ascontiguousarray(x.data), x.dtype) for x in (ptr, val, mask))
        return super().create_atomic_rmw(rmwOp, *solid, sem, scope)

    def create_atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any, scope: Any) -> TensorHandle:
        self._guard_atomic(ptr, None)
        solid = (TensorHandle(np.ascontiguousarray(x.data), x.dtype) for x in (ptr, cmp, val))
        return super().create_atomic_cas(*solid, sem, scope)

    def _guard_atomic(self, ptr: TensorHandle, active: Array | None) -> None:
        width = numeric.numpy_type(ptr.get_element_ty()).itemsize
        found = self._locate(ptr, active, width, "atomic")
        if found is not None:
            self._note(*found, width, atomic=True)

    def create_descriptor_load(self, desc: Any, indices: Sequence[TensorHandle], *policy: Any) -> TensorHandle:
        ptrs, mask = self._materialize(desc, indices)
        kind = numeric.numpy_type(ptrs.get_element_ty())
        pad = np.nan if desc.padding == ir.PADDING_OPTION.PAD_NAN else 0
        other = TensorHandle(np.full(ptrs.data.shape, pad, dtype=kind), ptrs.get_element_ty())
        return self.create_masked_load(ptrs, mask, other)

    def create_descriptor_store(self, desc: Any, value: TensorHandle, indices: Sequence[TensorHandle]) -> None:
        ptrs, mask = self._materialize(desc, indices)
        self.create_masked_store(ptrs, value, mask)

    def _materialize(self, desc: Any, indices: Sequence[TensorHandle]) -> tuple[TensorHandle, TensorHandle]:
        ptrs, inside = desc.materialize_pointers(indices)
        ptrs.attr.update(desc.base.attr)
        return ptrs, TensorHandle(inside, tl.int1) if isinstance(inside, np.ndarray) else inside


def _keeps_region(name: str) -> Callable[..., TensorHandle]:
    """The stock operation `name`, carrying the tensor that a pointer belongs to along."""
    stock = getattr(InterpreterBuilder, name)

    def operation(self: GuardedMemory, arg: TensorHandle, *rest: Any) -> TensorHandle:
        out = stock(self, arg, *rest)
        if _REGION in arg.attr:
            out.attr[_REGION] = arg.attr[_REGION]
        return out

    return operation


for _name in ("create_reshape", "create_trans", "create_expand_dims", "create_broadcast", "create_unsplat"):
    setattr(GuardedMemory, _name, _keeps_region(_name))
