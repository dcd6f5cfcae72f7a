"""The values of Triton's interpreter, mended: a kernel's operations as a GPU would compute them, and guarded.

Mended: rounding to bfloat16 and float16, products in the storage types and in TF32, libdevice. Guarded:
arithmetic in bfloat16, wrapping signed integers, and memory (see `interpret_memory`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton._C.libtriton import ir
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import InterpreterOptions, TensorHandle

from specc.targets.triton import interpret_numeric as numeric
from specc.targets.triton.interpret_faults import FalseHint, IndexWrap, KernelError
from specc.targets.triton.interpret_memory import GuardedMemory, is_bfloat16, refuse_storage_type, region_of
from specc.targets.triton.interpret_numeric import Array
from specc.targets.triton.interpret_trace import Region, WriteLog

_FLOATS = ("bf16", "fp16", "fp32", "fp64")
_SMALLEST_K = {8: 32, 16: 16, 32: 16}


def _in_registers(handle: Any) -> Array:
    """A float operand of a dot in the type its products are formed in."""
    if is_bfloat16(handle):
        return numeric.bfloat16_to_float32(handle.data)
    data: Array = handle.data
    return data.astype(np.float32) if data.dtype == np.float16 else data


def _wraps(kind: np.dtype[Any]) -> bool:
    return kind.kind == "i"


def _refuse_wrap(what: str, kind: np.dtype[Any]) -> None:
    raise IndexWrap(f"{what} leaves the range of {kind.name}; widen an operand to int64 first")


def _smallest_dot(left: Any, right: Any) -> tuple[int, int, int]:
    """The smallest (M, N, K) a tensor core takes, in every Triton from 3.6 on."""
    return 1, 1, _SMALLEST_K.get(left.scalar.primitive_bitwidth, 1)


class GuardedBuilder(GuardedMemory):
    """One launch's operations: memory, casts, arithmetic, products and shapes."""

    def __init__(self, regions: Sequence[Region], log: WriteLog) -> None:
        super().__init__(regions, log)
        self.options = dataclasses.replace(InterpreterOptions(), sanitize_overflow=False)
        self.codegen_fns["min_dot_size"] = _smallest_dot

    # Casts

    def cast_impl(self, src: TensorHandle, dst_type: Any) -> TensorHandle:
        target = dst_type.scalar
        data = numeric.bfloat16_to_float32(src.data) if is_bfloat16(src) else src.data
        if target.name == "bf16":
            return TensorHandle(numeric.float32_to_bfloat16(data.astype(np.float32)), target)
        kind = numeric.numpy_type(target)
        if data.dtype.kind == "i" and kind.kind == "i" and kind.itemsize < data.dtype.itemsize:
            self._refuse_narrowing(data, kind)
        return TensorHandle(data.astype(kind), target)

    def _refuse_narrowing(self, data: Array, kind: np.dtype[Any]) -> None:
        limits = np.iinfo(kind)
        if data.size and (int(data.min()) < limits.min or int(data.max()) > limits.max):
            _refuse_wrap("a cast", kind)

    def create_fp_to_fp(self, src: TensorHandle, dst_type: Any, rounding_mode: Any) -> TensorHandle:
        source, target = src.dtype.scalar.name, dst_type.scalar.name
        if source not in _FLOATS or target not in _FLOATS:
            return super().create_fp_to_fp(src, dst_type, rounding_mode)
        if rounding_mode != ir.ROUNDING_MODE.RTZ:
            return self.cast_impl(src, dst_type)
        if (source, target) != ("fp32", "bf16"):
            raise KernelError(f"rounding toward zero from {source} to {target} is not simulated")
        return TensorHandle(numeric.float32_to_bfloat16(src.data, toward_zero=True), dst_type.scalar)

    def get_bf16(self, value: float) -> TensorHandle:
        return self.cast_impl(self.get_fp32(value), tl.bfloat16)

    def create_bitcast(self, src: TensorHandle, dst_type: Any) -> TensorHandle:
        data = np.ascontiguousarray(src.data).view(numeric.numpy_type(dst_type))
        return TensorHandle(data, dst_type.scalar, src.attr if dst_type.scalar.is_ptr() else {})

    create_int_to_ptr = create_bitcast
    create_ptr_to_int = create_bitcast

    # Arithmetic

    def binary_op(self, lhs: TensorHandle, rhs: TensorHandle, op: Any) -> TensorHandle:
        refuse_storage_type(lhs, rhs)
        out = super().binary_op(lhs, rhs, op)
        return TensorHandle(out.data, tl.int1) if out.data.dtype == np.bool_ else out

    def ternary_op(self, lhs: TensorHandle, rhs: TensorHandle, other: TensorHandle, op: Any) -> TensorHandle:
        refuse_storage_type(lhs, rhs, other)
        return super().ternary_op(lhs, rhs, other, op)

    def unary_op(self, arg: TensorHandle, op: Callable[[Array], Array]) -> TensorHandle:
        refuse_storage_type(arg)
        return super().unary_op(arg, op)

    def create_fabs(self, arg: TensorHandle) -> TensorHandle:
        return self.unary_op(arg, np.abs)

    def create_erf(self, arg: TensorHandle) -> TensorHandle:
        return self.unary_op(arg, numeric.erf)

    def create_rsqrt(self, arg: TensorHandle) -> TensorHandle:
        refuse_storage_type(arg)
        return super().create_rsqrt(arg)

    def create_fma(self, x: TensorHandle, y: TensorHandle, z: TensorHandle) -> TensorHandle:
        refuse_storage_type(x, y, z)
        return super().create_fma(x, y, z)

    def create_select(self, cond: TensorHandle, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        same = region_of(lhs) is region_of(rhs)
        return TensorHandle(np.where(cond.data, lhs.data, rhs.data), rhs.dtype, rhs.attr if same else {})

    def create_add(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        out = self.binary_op(lhs, rhs, np.add)
        kind = out.data.dtype
        if _wraps(kind) and (((lhs.data ^ out.data) & (rhs.data ^ out.data)) < 0).any():
            _refuse_wrap("an addition", kind)
        return out

    def create_sub(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        out = self.binary_op(lhs, rhs, np.subtract)
        kind = out.data.dtype
        if _wraps(kind) and (((lhs.data ^ rhs.data) & (lhs.data ^ out.data)) < 0).any():
            _refuse_wrap("a subtraction", kind)
        return out

    def create_mul(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        out = self.binary_op(lhs, rhs, np.multiply)
        kind = out.data.dtype
        if not _wraps(kind) or out.data.size == 0:
            return out
        bound = _magnitude(lhs.data) * _magnitude(rhs.data)
        if bound > np.iinfo(kind).max and _product_wraps(lhs.data, rhs.data, out.data):
            _refuse_wrap("a product", kind)
        return out

    def create_shl(self, lhs: TensorHandle, rhs: TensorHandle) -> TensorHandle:
        out = self.binary_op(lhs, rhs, np.left_shift)
        if _wraps(out.data.dtype) and (np.right_shift(out.data, rhs.data) != lhs.data).any():
            _refuse_wrap("a shift", out.data.dtype)
        return out

    def create_assume(self, condition: TensorHandle) -> None:
        if not condition.data.all():
            raise FalseHint("tl.assume states what does not hold")

    # Products and functions

    def create_dot(
        self,
        a: TensorHandle,
        b: TensorHandle,
        d: TensorHandle,
        input_precision: Any,
        max_num_imprecise_acc: Any,
    ) -> TensorHandle:
        if a.dtype.scalar.is_fp8() or b.dtype.scalar.is_fp8():
            return super().create_dot(a, b, d, input_precision, max_num_imprecise_acc)
        kind = d.data.dtype
        if a.data.dtype.kind in "iu" and not is_bfloat16(a):
            return TensorHandle(np.matmul(a.data.astype(kind), b.data.astype(kind)) + d.data, d.dtype.scalar)
        left, right = _in_registers(a), _in_registers(b)
        single = a.data.dtype == np.float32
        precision = input_precision.name.lower() if single else "ieee"
        product = numeric.matmul(left, right, precision)
        return TensorHandle((product + d.data.astype(product.dtype)).astype(kind), d.dtype.scalar)

    def create_extern_elementwise(
        self, lib_name: str, lib_path: str, symbol: str, args: Sequence[TensorHandle], result: Any, pure: bool
    ) -> TensorHandle:
        function = numeric.libdevice(symbol)
        if function is None:
            raise KernelError(f"libdevice function {symbol} is not simulated")
        refuse_storage_type(*args)
        kind = numeric.numpy_type(result)
        return TensorHandle(np.asarray(function(*(a.data for a in args))).astype(kind), result.scalar)

    # Shapes

    def create_splat(self, ret_ty: Any, arg: TensorHandle) -> TensorHandle:
        return TensorHandle(np.broadcast_to(arg.data.reshape(()), ret_ty.shape), arg.dtype.scalar, arg.attr)


def _magnitude(data: Array) -> int:
    return max(abs(int(data.min())), abs(int(data.max())))


def _product_wraps(lhs: Array, rhs: Array, out: Array) -> bool:
    if out.dtype.itemsize < 8:
        return bool((np.multiply(lhs, rhs, dtype=np.int64) != out).any())
    return bool((np.abs(np.multiply(lhs, rhs, dtype=np.float64) - out) > 2.0**32).any())


class GuardedSemantic(TritonSemantic):  # type: ignore[misc]
    """Triton's own typing rules over the guarded builder."""

    def load(self, ptr: Any, mask: Any = None, other: Any = None, *rest: Any) -> Any:
        self.builder.other_given = other is not None
        return super().load(ptr, mask, other, *rest)
