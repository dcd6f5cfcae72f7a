"""What a target promises about its arithmetic: formats, order of summation, accuracy of elementary functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import ceil, log2

from specc.bounds.formats import FORMATS, Format


@dataclass(frozen=True)
class Accuracy:
    """|computed - exact| <= (ulps + per_argument·|x| + 1/2) ulp of the result, and exact at `exact_at`.

    The half ulp is there because vendors count from the correctly rounded result; with `correct`, the result is the
    correctly rounded one. An ulp is at most 2u·|result|, u being the unit roundoff.
    """

    ulps: float
    source: str
    per_argument: float = 0.0
    correct: bool = False
    exact_at: float | None = None

    @property
    def units(self) -> float:
        """Relative error in unit roundoffs, without the part that grows with the argument."""
        return 1.0 if self.correct else 2 * self.ulps + 1

    @property
    def units_per_argument(self) -> float:
        return 2 * self.per_argument


@dataclass(frozen=True)
class Tiles:
    """Terms are added in index order, `tile` at a time; inside a tile the order is free, as is whether the running sum
    takes part. Each term costs at most `per_term` unit roundoffs of what has been added so far.

    A kernel whose own tile divides `tile` conforms. `restarts`: the terms may also be summed in several runs of
    neighbours (the splits of a decode kernel), whose sums are then added.
    """

    tile: int
    per_term: float = 1.0
    restarts: bool = False


@dataclass(frozen=True)
class AnyOrder:
    """Terms are added in any order, a tree included, at most `depth(n)` additions deep."""

    lanes: int = 1
    per_term: float = 1.0

    def depth(self, n: int) -> int:
        """Additions on the longest path for `n` terms.

        `lanes` partial sums are formed one term after another, then added as a tree. A pairwise sum that starts from
        blocks of 128 terms in 8 lanes, as NumPy's does, also conforms.
        """
        if self.lanes == 1 or n <= 8:
            return max(n - 1, 0)
        threads = ceil(n / self.lanes) + ceil(log2(self.lanes)) + 5
        pairwise = 18 + max(0, ceil(log2(n / 128)))
        return min(n - 1, max(threads, pairwise))


Summation = Tiles | AnyOrder


@dataclass(frozen=True)
class Instruction:
    """A matrix instruction: `products` exact products and the running sum are aligned to the largest of them, cut
    (not rounded) to 23 + `extra_bits` fraction bits, added, and the sum is cut to float32.

    Facts: M. Fasi, N. Higham, M. Mikaitis, S. Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Comput. Sci.
    7:e330, 2021; F. Khattak, M. Mikaitis, Accurate models of NVIDIA tensor cores, arXiv:2512.07004. The PTX ISA
    promises accumulation "with at least single precision" and leaves order and rounding open.
    """

    products: int
    extra_bits: int

    @property
    def per_term(self) -> float:
        """Unit roundoffs of float32 per product: each of products + 1 addends loses less than 2^-extra_bits, and the
        result less than 1, in units of 2^-23 = 2u of the largest magnitude."""
        return 2 * ((self.products + 1) * 2.0**-self.extra_bits + 1) / self.products


AMPERE = Instruction(8, 1)
HOPPER = Instruction(16, 2)


@dataclass(frozen=True)
class Depth:
    """How each kind of reduction is summed. `keys`: the weighted values of a softmax; `weights`: its denominator.
    `key_block`: the least number of keys between two rescalings of an online softmax. `normalise_first`: weights are
    divided by their sum before they meet the values. `chunks`: steps of a recurrence that are worked out together, any
    of these numbers (none: one step after another)."""

    contraction: Summation
    row: Summation
    keys: Summation
    weights: Summation
    key_block: int = 16
    normalise_first: bool = False
    chunks: tuple[int, ...] = ()


@dataclass(frozen=True)
class Numerics:
    """Arithmetic of a target. `storage`: format per role. `flush`: results and operands below it may become 0.

    `functions` has an `Accuracy` for `div` and each elementary function. Constants are folded, then rounded once.
    """

    storage: Mapping[str, str]
    depth: Depth
    functions: Mapping[str, Accuracy]
    accumulator: str = "float32"
    flush: float = 0.0
    name: str = field(default="", compare=False)

    @property
    def format(self) -> Format:
        return FORMATS[self.accumulator]


_PTX = "PTX ISA 9.1, floating point instructions, {}"
_CUDA = "CUDA C++ Programming Guide, mathematical functions, single precision table"
_SVML = "NumPy 1.22 release notes: short vector math library, 4 ulp"

TRITON_FUNCTIONS: dict[str, Accuracy] = {
    "div": Accuracy(2, _PTX.format("div.full.f32 (`/` on float32)")),
    "sqrt": Accuracy(0, _PTX.format("sqrt.rn.f32 (`tl.sqrt_rn`)"), correct=True),
    # On a GPU the argument is multiplied by a rounded log2 e first: 2 + 1.173 |x| ulp.
    "exp": Accuracy(
        2.52,
        "NumPy 1.17 release notes (2.52); CUDA C++ Programming Guide, intrinsic functions, __expf",
        per_argument=1.173,
        exact_at=0,
    ),
    "log": Accuracy(3.83, "NumPy 1.17 release notes (3.83); " + _CUDA + " (1)", exact_at=1),
    "sin": Accuracy(2, _CUDA + "; NumPy 1.18 release notes (1.49)", exact_at=0),
    "cos": Accuracy(2, _CUDA + "; NumPy 1.18 release notes (1.49)", exact_at=0),
    "tanh": Accuracy(4, _SVML + "; " + _CUDA + " (2)", exact_at=0),
    "log1p": Accuracy(4, _SVML + "; " + _CUDA + " (1)", exact_at=0),
    "expm1": Accuracy(4, _SVML + "; " + _CUDA + " (1)", exact_at=0),
}
"""What `tl` functions and `libdevice` lower to for sm_80 and later, and NumPy in the interpreter: the worse of the two.
sin and cos of an angle in turns (sinpi, cospi) are within the same two ulp."""

CUDA_FUNCTIONS: dict[str, Accuracy] = {
    "div": Accuracy(0, _CUDA + " (-prec-div=true)", correct=True),
    "sqrt": Accuracy(0, _CUDA + " (-prec-sqrt=true)", correct=True),
    "exp": Accuracy(2, _CUDA + "; glibc manual, known maximum errors (1)", exact_at=0),
    "log": Accuracy(1, _CUDA + "; glibc manual, known maximum errors (1)", exact_at=1),
    "sin": Accuracy(2, _CUDA + "; glibc manual, known maximum errors (1)", exact_at=0),
    "cos": Accuracy(2, _CUDA + "; glibc manual, known maximum errors (1)", exact_at=0),
    "tanh": Accuracy(2, _CUDA + "; glibc manual, known maximum errors (2)", exact_at=0),
    "log1p": Accuracy(2, _CUDA + " (1); glibc manual, known maximum errors (2)", exact_at=0),
    "expm1": Accuracy(2, _CUDA + " (1); glibc manual, known maximum errors (1)", exact_at=0),
}
"""Overloads of C++ for float, compiled without fast math, and glibc on the CPU: the worse of the two. sin and cos of an
angle in turns (sinpif, cospif) are within the same two ulp."""

_VECTOR = "SLEEF 3 (functions of 1.0 ulp) and Intel VML (high accuracy mode, below 1 ulp)"
TORCH_FUNCTIONS: dict[str, Accuracy] = {
    "div": Accuracy(0, "IEEE 754", correct=True),
    "sqrt": Accuracy(1, _VECTOR, exact_at=0),
    "log": Accuracy(1, _VECTOR, exact_at=1),
    **{fn: Accuracy(1, _VECTOR, exact_at=0) for fn in ("exp", "sin", "cos", "tanh", "log1p", "expm1")},
}
"""What PyTorch calls on a CPU."""


def triton(storage: Mapping[str, str], instruction: Instruction = AMPERE, tile: int = 512) -> Numerics:
    """Triton on a GPU of sm_80 or later and in its interpreter. `tile`: a multiple of every tile of an inner axis
    (of K in a contraction, of keys in attention) that a kernel may use. Float32 operands go through fused multiply-adds
    (`input_precision="ieee"`), narrower ones may go through matrix instructions."""
    narrow = any(dtype in ("bfloat16", "float16") for dtype in storage.values())
    per_term = max(1.0, instruction.per_term) if narrow else 1.0
    tiles, keys = Tiles(tile, per_term), Tiles(tile, per_term, restarts=True)
    depth = Depth(tiles, AnyOrder(lanes=32), keys, AnyOrder(lanes=16), key_block=16)
    return Numerics(storage, depth, TRITON_FUNCTIONS, flush=FORMATS["float32"].tiny, name="triton")


def cuda(storage: Mapping[str, str], lanes: int = 1, instruction: Instruction = AMPERE, tile: int = 512) -> Numerics:
    """CUDA C++ on a GPU of sm_80 or later, compiled with NVRTC's defaults (no flushing to zero), and on the CPU.
    `lanes`: threads that share a row of a reduction; four share the weights of a softmax, as they do a row of a matrix
    instruction; the rest as for `triton`."""
    narrow = any(dtype in ("bfloat16", "float16") for dtype in storage.values())
    per_term = max(1.0, instruction.per_term) if narrow else 1.0
    tiles, keys = Tiles(tile, per_term), Tiles(tile, per_term, restarts=True)
    depth = Depth(tiles, AnyOrder(lanes), keys, AnyOrder(lanes=4), key_block=16)
    return Numerics(storage, depth, CUDA_FUNCTIONS, name="cuda")


def torch(storage: Mapping[str, str], accumulator: str = "float32") -> Numerics:
    """PyTorch on a CPU, computing in `accumulator` and storing at the end, sums in any order."""
    depth = Depth(AnyOrder(), AnyOrder(), AnyOrder(), AnyOrder(), normalise_first=True)
    flush = FORMATS[accumulator].tiny
    return Numerics(storage, depth, TORCH_FUNCTIONS, accumulator, flush, name=f"torch {accumulator}")
