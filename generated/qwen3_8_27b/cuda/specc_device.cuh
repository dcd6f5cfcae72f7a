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

#include <initializer_list>
#else
#include "specc_host.h"
#endif

// The type that kernels compute in. `real(c)` is a constant that float32 does not hold exactly.
#ifdef SPECC_ACC
#define SPECC_WIDENED 1
#else
#define SPECC_ACC float
#endif
using real = SPECC_ACC;

namespace specc {

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

// ---- launches ----------------------------------------------------------------------------------------------------

constexpr __host__ __device__ int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Threads along a row of `pieces`, in blocks of at most `most`.
constexpr __host__ __device__ int row_threads(int pieces, int most) {
    return pieces <= most ? pieces : int(ceil_div(ceil_div(pieces, ceil_div(pieces, most)), WARP) * WARP);
}
/// Elements of a vector of 16 bytes.
template <typename T>
constexpr int FULL = 16 / int(sizeof(T));

#ifndef __CUDACC_RTC__

constexpr int64_t MOST_ROWS = 0x7fffffff;
inline bool sizes_fit(std::initializer_list<int64_t> sizes) {
    for (const int64_t s : sizes)
        if (s < 0 || s > MOST_ROWS) return false;
    return true;
}

/// `call` with a value of the storage type that `type` numbers: 0 bfloat16, 1 float16, 2 float32, and 3 float64 where
/// kernels compute in that.
template <typename F>
cudaError_t with_storage(int type, F call) {
#ifdef SPECC_WIDENED
    return type == 3 ? call(double()) : cudaErrorInvalidValue;
#else
    switch (type) {
        case 0: return call(__nv_bfloat16());
        case 1: return call(__half());
        case 2: return call(float());
    }
    return cudaErrorInvalidValue;
#endif
}

/// Whether every address of a row is a multiple of 16 bytes: that of the first row, and the step to the next one.
inline bool aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }
inline bool aligned(int64_t stride, int bytes) { return stride * bytes % 16 == 0; }

template <typename... P, typename... A>
cudaError_t launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments) {
#ifdef SPECC_HOST
    auto call = [=]() SPECC_PLAIN { kernel(static_cast<P>(arguments)...); };
    auto invoke = [](void* c) SPECC_PLAIN { (*static_cast<decltype(call)*>(c))(); };
    (void)stream;
    return specc_host::launch(reinterpret_cast<const void*>(kernel), invoke, &call, grid, block, shared_bytes);
#else
    if (shared_bytes > 48 * 1024) {
        const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                       cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes));
        if (error != cudaSuccess) return error;
    }
    kernel<<<grid, block, shared_bytes, stream>>>(static_cast<P>(arguments)...);
    return cudaGetLastError();
#endif
}

#endif

}  // namespace specc
