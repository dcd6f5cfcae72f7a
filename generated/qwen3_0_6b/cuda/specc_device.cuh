// Parts of CUDA kernels that are the same in all of them: storage types, vector accesses, reductions, and every
// instruction that has no name in CUDA C++. Compiles with nvcc, NVRTC, and a C++20 compiler for the CPU.
#pragma once

#if defined(__CUDACC_RTC__)
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#elif defined(__CUDACC__)
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#else
#include "specc_host.h"
#include "specc_matrix.h"
#endif

// The type that kernels compute in. `real(c)` is a constant that float32 does not hold exactly.
#ifdef SPECC_ACC
#define SPECC_WIDENED 1
#else
#define SPECC_ACC float
#endif
using real = SPECC_ACC;

namespace specc {

#ifdef SPECC_HOST
#define SPECC_LINE __builtin_LINE()
#else
#define SPECC_LINE 0
#endif

constexpr int WARP = 32;
constexpr unsigned EVERY_LANE = 0xffffffffu;

// ---- storage -----------------------------------------------------------------------------------------------------

__device__ __forceinline__ real to_real(float x) { return x; }
__device__ __forceinline__ real to_real(double x) { return real(x); }
__device__ __forceinline__ real to_real(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ real to_real(__half x) { return __half2float(x); }

template <typename T>
struct Storage {  // float, double
    static __device__ __forceinline__ T round(real x) { return T(x); }
};
template <>
struct Storage<__nv_bfloat16> {
    static __device__ __forceinline__ __nv_bfloat16 round(real x) { return __float2bfloat16_rn(float(x)); }
};
template <>
struct Storage<__half> {
    static __device__ __forceinline__ __half round(real x) { return __float2half_rn(float(x)); }
};

__device__ __forceinline__ real not_a_number() { return __int_as_float(0x7fffffff); }

/// `x` in storage type `T`, rounded to nearest even.
template <typename T>
__device__ __forceinline__ T round_to(real x) {
    return Storage<T>::round(x);
}

/// `x` as it is after a stay in storage type `T`.
template <typename T>
__device__ __forceinline__ real rounded(real x) {
    return to_real(round_to<T>(x));
}

template <typename T>
struct IsBfloat16 {
    static constexpr bool VALUE = false;
};
template <>
struct IsBfloat16<__nv_bfloat16> {
    static constexpr bool VALUE = true;
};

/// The storage type of accumulators beside storage type `T`.
template <typename T>
struct AccumulatorOf {
    using Type = float;
};
template <>
struct AccumulatorOf<double> {
    using Type = double;
};
template <typename T>
using Accumulator = typename AccumulatorOf<T>::Type;

// ---- memory ------------------------------------------------------------------------------------------------------

/// `N` neighbouring elements, moved 16 bytes at a time.
template <typename T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Vec {
    T at[N];
};

/// `N` elements from an address that is a multiple of their size, or of 16 bytes if they are longer.
template <int N, typename T>
__device__ __forceinline__ Vec<T, N> load(const T* from) {
#ifdef SPECC_HOST
    Vec<T, N> v;
    specc_host::checked_load(&v, from, sizeof v, alignof(Vec<T, N>));
    return v;
#else
    return *reinterpret_cast<const Vec<T, N>*>(from);
#endif
}

/// As `load`, of a row that ends after `left` elements; those past its end are 0.
template <int N, typename T>
__device__ __forceinline__ Vec<T, N> load_up_to(const T* from, int left) {
    if (left >= N) return load<N>(from);
    Vec<T, N> v;
#pragma unroll
    for (int n = 0; n < N; ++n) v.at[n] = n < left ? from[n] : round_to<T>(0.0f);
    return v;
}

template <typename T, int N>
__device__ __forceinline__ void store(T* to, const Vec<T, N>& v) {
#ifdef SPECC_HOST
    specc_host::checked_store(to, &v, sizeof v, alignof(Vec<T, N>));
#else
    *reinterpret_cast<Vec<T, N>*>(to) = v;
#endif
}

/// As `store`, into a row that ends after `left` elements.
template <typename T, int N>
__device__ __forceinline__ void store_up_to(T* to, const Vec<T, N>& v, int left) {
    if (left >= N) {
        store(to, v);
        return;
    }
#pragma unroll
    for (int n = 0; n < N; ++n)
        if (n < left) to[n] = v.at[n];
}

/// Element `at` of an index operand of `bytes` (4 or 8) a number.
__device__ __forceinline__ int64_t index_at(const void* indices, int bytes, int64_t at) {
    return bytes == 8 ? static_cast<const int64_t*>(indices)[at] : int64_t(static_cast<const int32_t*>(indices)[at]);
}

/// Memory of the block whose size the launch says, aligned to 16 bytes.
template <typename T>
__device__ __forceinline__ T* dynamic_shared() {
#ifdef SPECC_HOST
    return static_cast<T*>(specc_host::dynamic_shared(16));
#else
    extern __shared__ __align__(16) unsigned char specc_dynamic_shared[];
    return reinterpret_cast<T*>(specc_dynamic_shared);
#endif
}

// ---- asynchronous copies -----------------------------------------------------------------------------------------

/// Starts to copy `N` elements (4, 8 or 16 bytes) to shared memory, or zeros where `from` is not `valid`. They are there
/// for this thread once it has waited for their group, for others after a barrier that follows.
template <int N, typename T>
__device__ __forceinline__ void copy_async(T* to, const T* from, bool valid = true) {
#ifdef SPECC_HOST
    specc_host::copy_async(to, valid ? from : nullptr, N * sizeof(T));
#else
    constexpr int BYTES = N * int(sizeof(T));
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async moves 4, 8 or 16 bytes");
    const unsigned place = unsigned(__cvta_generic_to_shared(to));
    const int taken = valid ? BYTES : 0;
    if (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(place), "l"(from), "r"(taken) : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(place), "l"(from), "n"(BYTES), "r"(taken)
                     : "memory");
    }
#endif
}

/// Makes a group of the copies that this thread has started since the last one.
__device__ __forceinline__ void commit_copies() {
#ifdef SPECC_HOST
    specc_host::commit_copies();
#else
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until all but the `LEFT` newest groups of this thread have arrived.
template <int LEFT>
__device__ __forceinline__ void wait_copies() {
#ifdef SPECC_HOST
    specc_host::wait_copies(LEFT);
#else
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

// ---- matrix instructions -----------------------------------------------------------------------------------------

/// Two neighbouring elements of a fragment: a register.
#ifdef SPECC_HOST
template <typename T>
using Pair = specc_host::Pair<T>;
#else
template <typename T>
struct Pair {
    unsigned bits;
};
#endif

/// Two numbers, rounded to storage.
template <typename T>
__device__ __forceinline__ Pair<T> pair(real low, real high) {
#ifdef SPECC_HOST
    return {round_to<T>(low), round_to<T>(high)};
#else
    static_assert(sizeof(T) == 2, "registers hold pairs of 16-bit elements");
    const T a = round_to<T>(low), b = round_to<T>(high);
    return {unsigned(*reinterpret_cast<const unsigned short*>(&a)) |
            unsigned(*reinterpret_cast<const unsigned short*>(&b)) << 16};
#endif
}

/// `COUNT` (1, 2 or 4) matrices of 8 rows of 8 elements from shared memory. Lane `l` gives the address of row `l % 8` of
/// matrix `l / 8`, a multiple of 16 bytes (lanes past the last matrix: any), and gets of each matrix row `l / 4`, columns
/// `2·(l % 4)` and the next. TRANSPOSED: that of the transposed matrix.
template <int COUNT, bool TRANSPOSED, typename T>
__device__ __forceinline__ void load_matrices(Pair<T>* to, const T* row, int line = SPECC_LINE) {
    static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4, "ldmatrix loads 1, 2 or 4 matrices");
#ifdef SPECC_HOST
    if (specc_host::lane() < COUNT * 8) {
        if (!specc_host::is_shared(row)) specc_host::fail("line %d: ldmatrix reads no shared memory", line);
        specc_host::check_read(row, 8 * sizeof(T), 16);
    }
    specc_host::Matrices<T> mine{row, to, COUNT, TRANSPOSED};
    specc_host::meet("ldmatrix", EVERY_LANE, &mine, specc_host::load_matrices<T>, line);
#else
    static_assert(sizeof(T) == 2, "ldmatrix moves 16-bit elements");
    const unsigned place = unsigned(__cvta_generic_to_shared(row));
    unsigned r[4];
    if (COUNT == 4 && !TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(place) : "memory");
    } else if (COUNT == 4) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(place) : "memory");
    } else if (COUNT == 2 && !TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(place) : "memory");
    } else if (COUNT == 2) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0, %1}, [%2];"
                     : "=r"(r[0]), "=r"(r[1]) : "r"(place) : "memory");
    } else if (!TRANSPOSED) {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(place) : "memory");
    } else {
        asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(r[0]) : "r"(place) : "memory");
    }
#pragma unroll
    for (int m = 0; m < COUNT; ++m) to[m].bits = r[m];
#endif
}

/// c += a·b for a warp: `a` 16 by 16, `b` 16 by 8, `c` 16 by 8 in `real`. With g = lane / 4 and p = 2·(lane % 4), a lane has
/// of `a` the pairs at (g, p), (g + 8, p), (g, p + 8), (g + 8, p + 8); of `b`, along its rows, those at (p, g), (p + 8, g);
/// and of `c` the elements (g, p), (g, p + 1), (g + 8, p), (g + 8, p + 1).
template <typename T>
__device__ __forceinline__ void multiply_add(real* c, const Pair<T>* a, const Pair<T>* b, int line = SPECC_LINE) {
#ifdef SPECC_HOST
    specc_host::Product<T, real> mine{a, b, c};
    specc_host::meet("mma", EVERY_LANE, &mine, specc_host::multiply_add<T, real, to_real>, line);
#else
    if (sizeof(T) == 2 && IsBfloat16<T>::VALUE) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0].bits), "r"(a[1].bits), "r"(a[2].bits), "r"(a[3].bits), "r"(b[0].bits), "r"(b[1].bits));
    } else {
        static_assert(sizeof(T) == 2, "matrix instructions multiply 16-bit elements");
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                     "{%0, %1, %2, %3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0].bits), "r"(a[1].bits), "r"(a[2].bits), "r"(a[3].bits), "r"(b[0].bits), "r"(b[1].bits));
    }
#endif
}

// ---- reductions --------------------------------------------------------------------------------------------------

/// The larger of two numbers, NaN if either is.
__device__ __forceinline__ real larger(real a, real b) { return a > b || a != a ? a : b; }
__device__ __forceinline__ real smaller(real a, real b) { return a < b || a != a ? a : b; }

struct Sum {
    static __device__ __forceinline__ real neutral() { return 0.0f; }
    static __device__ __forceinline__ real join(real a, real b) { return a + b; }
};
struct Max {
    static __device__ __forceinline__ real neutral() { return __int_as_float(int(0xff800000)); }
    static __device__ __forceinline__ real join(real a, real b) { return larger(a, b); }
};

/// All `LANES` (a power of two, at most 32) neighbouring lanes get their joint value. Every lane of the warp calls it.
template <typename Op, int LANES>
__device__ __forceinline__ real reduce_lanes(real value) {
#pragma unroll
    for (int bits = LANES / 2; bits > 0; bits /= 2) value = Op::join(value, __shfl_xor_sync(EVERY_LANE, value, bits));
    return value;
}

/// All threads of a block of `WARPS` warps get their joint value. `scratch`: shared memory of WARPS numbers that no
/// other reduction uses.
template <typename Op, int WARPS>
__device__ __forceinline__ real reduce_block(real value, real* scratch) {
    value = reduce_lanes<Op, WARP>(value);
    if (WARPS == 1) return value;
    if (threadIdx.x % WARP == 0) scratch[threadIdx.x / WARP] = value;
    __syncthreads();
    value = scratch[0];
#pragma unroll
    for (int n = 1; n < WARPS; ++n) value = Op::join(value, scratch[n]);
    return value;
}

/// A block gives up the fast way through a kernel for a slow one that only data which is not finite calls for. Nothing on
/// a GPU; the CPU counts such blocks.
__device__ __forceinline__ void start_slow_way() {
#ifdef SPECC_HOST
    specc_host::count_slow_block();
#endif
}

// ---- arithmetic --------------------------------------------------------------------------------------------------

/// Division that rounds down, and its remainder.
__device__ __forceinline__ int64_t floor_div(int64_t a, int64_t b) {
    const int64_t q = a / b;
    return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}
__device__ __forceinline__ int64_t floor_mod(int64_t a, int64_t b) { return a - floor_div(a, b) * b; }
__device__ __forceinline__ int64_t larger_index(int64_t a, int64_t b) { return a > b ? a : b; }
__device__ __forceinline__ int64_t smaller_index(int64_t a, int64_t b) { return a < b ? a : b; }
__device__ __forceinline__ int64_t magnitude(int64_t a) { return a < 0 ? -a : a; }

/// `angle` (radians) in turns, less the nearest whole number.
__device__ __forceinline__ double turn_fraction(double angle) {
    const double turns = angle * 0.15915494309189535;
    return turns - rint(turns);
}

/// Sine and cosine of an angle that is reduced in float64.
__device__ __forceinline__ float sine(double angle, float) { return sinpif(2.0f * float(turn_fraction(angle))); }
__device__ __forceinline__ float cosine(double angle, float) { return cospif(2.0f * float(turn_fraction(angle))); }
__device__ __forceinline__ double sine(double angle, double) { return sin(angle); }
__device__ __forceinline__ double cosine(double angle, double) { return cos(angle); }

// ---- shapes ------------------------------------------------------------------------------------------------------

constexpr __host__ __device__ int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Threads along a row of `pieces`, in blocks of at most `most`.
constexpr __host__ __device__ int row_threads(int pieces, int most) {
    return pieces <= most ? pieces : int(ceil_div(ceil_div(pieces, ceil_div(pieces, most)), WARP) * WARP);
}
/// Elements of a vector of 16 bytes.
template <typename T>
constexpr int FULL = 16 / int(sizeof(T));

}  // namespace specc
