"""Names of a generated CUDA file: none from a formula collides with C++, CUDA or the names that templates use."""

from __future__ import annotations

import re

from specc.ir import Model
from specc.kernels import Access, Kernel
from specc.targets.naming import Names, Vocabulary, found

KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class compl
    concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype default delete
    do double dynamic_cast else enum explicit export extern false final float for friend goto if import inline int long
    module mutable namespace new noexcept not not_eq nullptr operator or or_eq override private protected public
    register reinterpret_cast requires return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using virtual
    void volatile wchar_t while xor xor_eq restrict
"""
"""Of C++, and of C, which reads the header."""
MACROS = """
    I NULL acosh alloca asinh assert assert_perror atan2 atanh blockDim blockIdx carg cbrt cimag complex conj copysign
    cproj creal errno fdim fpclassify frexp gridDim hypot i386 ilogb imaginary isalnum isalpha isascii isblank iscntrl
    isdigit isfinite isgraph isgreater isgreaterequal isinf isless islessequal islessgreater islower isnan isnormal
    isprint ispunct isspace issubnormal isunordered isupper isxdigit ldexp linux llrint llround log10 logb lrint lround
    major makedev math_errhandling minor nearbyint nextafter nexttoward noreturn offsetof remainder remquo scalb
    scalbln scalbn sched_priority setjmp sigmask sigsetjmp stderr stdin stdout strdupa strndupa threadIdx toascii unix
    va_arg va_copy va_end va_start
"""
"""Macros in small letters of the headers of C, C++ and CUDA, where their names follow no rule."""
LIBRARY = """
    exp exp2 log log2 log1p expm1 sqrt rsqrt tanh sin cos tan sinh cosh asin acos atan fabs abs floor ceil rint round
    trunc fmax fmin fmod fma pow max min isnan isinf signbit erf erfc j0 j1 jn y0 y1 yn gamma lgamma tgamma index main
    memcpy memset printf malloc free clock time specc real Element dim3 uint3 half warpSize CUstream_st stream type
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t size_t
"""
LOCAL = "own_decay own_rate"
"""Names that printers choose where they are free."""
TEMPLATE = (
    "VEC", "WARPS", "LANES", "ROWS", "PIECES", "acc", "element", "index_bytes", "lane", "left", "n", "part", "parts",
    "Left", "Right", "Shape", "STEPS", "STRIDE", "across", "column", "factor", "left_tile", "own", "results", "right",
    "right_tile", "shared", "start", "step", "strand", "sum", "sums", "warp", "warp_m", "warp_n", "first_m", "first_n",
    "first_column", "kernels", "COLUMNS", "base", "bring_keys", "bring_values", "dot", "ends", "fade", "first", "good",
    "half", "high", "largest", "last", "least", "low", "most", "score", "scores", "seen_keys", "share", "tiles", "top",
    "total", "weight", "run", "run_few", "run_merge", "split", "splits", "each", "member", "values", "sums", "tops",
    "totals", "status", "even", "odd", "both", "from", "CHUNK", "VALUES", "KEYS", "memory", "state", "decay",
    "rate", "since", "fade", "pull", "meets", "added", "finds", "before", "gain", "inside", "first_value",
    "grid", "block", "piece", "result", "row", "table", "row_in", "rows", "scratch", "vector", "workspace",
    "first_member", "members", "own_score", "kernel", "bytes", "threads", "shared_bytes", "place", "X", "Y",
)  # fmt: skip
DERIVED = re.compile(
    r".*_(ptr|row|in|v|all|kernel|launch|first|found|valid|part|raw|term|tile)|.*_stride_.*|.*__.*|t\d+|_.*"
    # Macros: capitals (`NAN`), perhaps with an ending (`M_PIf32`), and families (`PRId64`, `cudaStreamLegacy`).
    r"|[A-Z][A-Z0-9_]*[A-Z][A-Z0-9_]*|[A-Z][A-Z0-9]*_\w*[A-Z]\w*|(PRI|SCN)\w+|[LP]_(tmp|ctermid|cuserid)\w*|cuda\w+"
    r"|(is|to)[a-z]+_l|(be|le)\d+toh|hto[bl]e\d+|(sa|si|sigev|pthread)_\w+|st_[acm]time"
)
"""Forms of the names that templates and printers make, and of macros."""
HEADERS = re.compile(
    r"[a-z0-9]+|specc_.*|(nv|make|syncthreads|pthread|clock|timer|sched|posix|at)_.*|.*_(t|r|l|unlocked|approx)|\w+\d_\d+a|.*__.*"
)
"""Forms of what headers declare outside of namespaces: any single word may be there, such as `float4` or `signal`."""

VOCABULARY = Vocabulary(frozenset(" ".join((KEYWORDS, MACROS, LIBRARY, LOCAL)).split()), frozenset(TEMPLATE), DERIVED)


def local_names(kernel: Kernel) -> Names:
    """Those of a kernel's body that are free: not what a formula calls by them, nor vectors of what it reads."""
    names = VOCABULARY.local_names(kernel)
    names.taken.update(f"{a.name}_v" for a in found(kernel.schedule, Access))
    return names


def legal(kernel: Kernel) -> Kernel:
    """The same kernel with every name of its schedule, operands, tables, sizes and functions fit for a file."""
    return VOCABULARY.legal(kernel, (f"{kernel.name}_kernel", f"{kernel.name}_launch"))


def namespace(model: Model) -> str:
    """The namespace of a model's kernels, and what the names of its launch wrappers start with: `gemma_4_31b`."""
    name = re.sub(r"\W+", "_", model.key.rpartition("/")[2].lower(), flags=re.ASCII).strip("_")
    claimed = name in VOCABULARY.reserved or HEADERS.fullmatch(name) is not None
    return name if re.match(r"[a-z]", name) and not claimed else f"model_{name}"
