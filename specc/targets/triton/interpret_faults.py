"""What a kernel can do wrong that only an interpreter sees."""

from __future__ import annotations

Program = tuple[int, int, int]


class KernelFault(Exception):
    """A fault of a kernel, with the place where it happened once the executor has filled it in.

    `detail` says what is wrong, `kernel` names the jitted function, `program` is the program id, `line` is
    the line of the kernel's source file.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(detail)
        self.detail = detail
        self.kernel: str | None = None
        self.program: Program | None = None
        self.line: int | None = None

    def located(self, kernel: str, program: Program | None, line: int | None) -> KernelFault:
        """Fills in the place, unless a deeper frame has already done so."""
        if self.kernel is None:
            self.kernel, self.line = kernel, line
            self.program = program if self.program is None else self.program
        return self

    def __str__(self) -> str:
        if self.kernel is None:
            return self.detail
        line = "" if self.line is None else f", line {self.line}"
        program = "" if self.program is None else f", program {self.program}"
        return f"{self.kernel}{program}{line}: {self.detail}"


class MemoryFault(KernelFault):
    """An active lane addresses bytes outside its tensor.

    `argument` is the kernel's parameter (None if the address belongs to none), `offset` is in elements from
    the tensor's first element.
    """

    def __init__(self, detail: str, argument: str | None, offset: int) -> None:
        super().__init__(detail)
        self.argument = argument
        self.offset = offset


class DoubleWrite(KernelFault):
    """An element is stored more than once in one launch, without atomics."""


class IndexWrap(KernelFault):
    """Signed integer arithmetic leaves the range of its type."""


class StorageArithmetic(KernelFault):
    """Arithmetic or comparison in a storage type (bfloat16) that kernels must upcast first."""


class FalseHint(KernelFault):
    """`tl.multiple_of`, `tl.max_contiguous`, `tl.max_constancy` or `tl.assume` states what does not hold."""


class KernelError(KernelFault):
    """Triton itself refuses what the kernel does: wrong types, wrong shapes, an unknown function."""
