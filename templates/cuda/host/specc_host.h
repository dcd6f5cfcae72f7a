// What a kernel file sees of CUDA when a C++20 compiler for the CPU builds it. Blocks run one after another, the
// threads of a block as fibers in an order drawn from a seed. Whatever is missing here is a compile error.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SPECC_HOST 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// Blocks run one at a time, so memory that they have for themselves is static; gaps between arrays catch indices.
#define __shared__ static __attribute__((aligned(512)))
#ifdef __clang__  // g++ keeps them apart with -fno-thread-jumps
#define SPECC_MEETING __attribute__((noinline, convergent))
#else
#define SPECC_MEETING __attribute__((noinline))
#endif
#define SPECC_PLAIN __attribute__((no_sanitize("thread", "undefined")))

struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define SPECC_VECTORS(T, name)                                              \
    struct alignas(2 * sizeof(T)) name##2 {                                 \
        T x, y;                                                             \
    };                                                                      \
    struct alignas(4 * sizeof(T)) name##4 {                                 \
        T x, y, z, w;                                                       \
    };                                                                      \
    inline name##2 make_##name##2(T x, T y) { return {x, y}; }              \
    inline name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }
SPECC_VECTORS(float, float)
SPECC_VECTORS(int, int)
SPECC_VECTORS(unsigned, uint)
#undef SPECC_VECTORS

typedef struct CUstream_st* cudaStream_t;
typedef int cudaError_t;
constexpr cudaError_t cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorLaunchFailure = 719;
constexpr int warpSize = 32;

namespace specc_host {

// The runtime, in a library of its own.
__attribute__((const)) uint3 thread_index();
__attribute__((const)) uint3 block_index();
__attribute__((const)) uint3 block_size();
__attribute__((const)) uint3 grid_size();
void* dynamic_shared(size_t alignment);

/// Waits until every lane of `mask` has come to the same operation, whose last lane then runs `complete` on what all
/// lanes brought (by lane; null for lanes outside of the mask).
/// `site`: the call in the machine code (the caller's, if null): a helper that two branches call is no place to meet.
using Complete = void (*)(void* const* brought, unsigned mask);
SPECC_MEETING void meet(const char* what, unsigned mask, void* brought, Complete complete, int line, const void* site = nullptr);
/// `meet` for an operation that orders memory.
SPECC_MEETING void meet_and_order(unsigned mask, int line);
SPECC_MEETING void barrier(int line);
/// Counts the threads whose `predicate` holds, at a barrier.
SPECC_MEETING int barrier_count(bool predicate, int line, const void* site = nullptr);

/// Counts the block that runs, once, among those that took a slow way.
void count_slow_block();

/// Ends the launch: the fiber that calls it never goes on.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

/// What a kernel with `__launch_bounds__(most, …)` starts with.
template <typename... Rest>
SPECC_PLAIN void check_bounds(unsigned most, Rest...) {
    const uint3 n = block_size();
    if (n.x * n.y * n.z > most) fail("a launch of %u threads, __launch_bounds__ allows %u", n.x * n.y * n.z, most);
}

/// Accesses that the compiler does not see as such.
void check_read(const void* from, size_t bytes, size_t alignment);
void check_write(void* to, size_t bytes, size_t alignment);
void checked_load(void* to, const void* from, size_t bytes, size_t alignment);
void checked_store(void* to, const void* from, size_t bytes, size_t alignment);
void check_atomic(void* address, size_t bytes);
/// An asynchronous copy: `bytes` of `from` (zeros where null) are in `to` once the thread has waited for its group.
void copy_async(void* to, const void* from, size_t bytes);
void commit_copies();
void wait_copies(unsigned groups_left);
bool is_shared(const void* address);

using Invoke = void (*)(void* call);
/// Where the arguments of a kernel lie, and their sizes.
struct Arguments {
    const void* const* values;
    const size_t* sizes;
    size_t count;
};
int launch(const void* kernel, Invoke invoke, void* call, const Arguments& arguments, dim3 grid, dim3 block,
           size_t shared_bytes);

/// The value at an address that an atomic operation is about to change.
template <typename T>
SPECC_PLAIN T read_modify(T* address) {
    check_atomic(address, sizeof(T));
    return *address;
}

template <typename T>
struct Exchanged {
    T given, taken;
    int source;
};

template <typename T>
SPECC_PLAIN void exchange(void* const* brought, unsigned mask) {
    for (int lane = 0; lane < 32; ++lane) {
        auto* mine = static_cast<Exchanged<T>*>(brought[lane]);
        if (!mine) continue;
        if (!(mask >> mine->source & 1)) fail("lane %d takes a shuffled value from lane %d, which is not in the mask %#x", lane, mine->source, mask);
        mine->taken = static_cast<Exchanged<T>*>(brought[mine->source])->given;
    }
}

template <typename T>
SPECC_MEETING SPECC_PLAIN T shuffle(const char* what, unsigned mask, T value, int source, int line) {
    static_assert(__is_trivially_copyable(T) && sizeof(T) <= 8);
    Exchanged<T> mine{value, value, source};
    meet(what, mask, &mine, exchange<T>, line, __builtin_return_address(0));
    return mine.taken;
}

inline int lane() {
    const uint3 t = thread_index(), n = block_size();
    return int((t.x + n.x * (t.y + n.y * t.z)) & 31);
}

struct Voted {
    bool given;
    unsigned ballot;
};

SPECC_PLAIN inline void vote(void* const* brought, unsigned) {
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (brought[lane] && static_cast<Voted*>(brought[lane])->given) ballot |= 1u << lane;
    for (int lane = 0; lane < 32; ++lane)
        if (brought[lane]) static_cast<Voted*>(brought[lane])->ballot = ballot;
}

SPECC_MEETING SPECC_PLAIN inline unsigned ballot(const char* what, unsigned mask, bool predicate, int line) {
    Voted mine{predicate, 0};
    meet(what, mask, &mine, vote, line, __builtin_return_address(0));
    return mine.ballot;
}

}  // namespace specc_host

#define threadIdx (specc_host::thread_index())
#define blockIdx (specc_host::block_index())
#define blockDim (specc_host::block_size())
#define gridDim (specc_host::grid_size())

__forceinline__ void __syncthreads(int line = __builtin_LINE()) { specc_host::barrier(line); }
__forceinline__ int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
    return specc_host::barrier_count(predicate != 0, line);
}
__forceinline__ int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
    return specc_host::barrier_count(predicate != 0, line) != 0;
}
__forceinline__ void __syncwarp(unsigned mask = 0xffffffffu, int line = __builtin_LINE()) {
    specc_host::meet_and_order(mask, line);
}
__forceinline__ unsigned __ballot_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return specc_host::ballot("__ballot_sync", mask, predicate != 0, line);
}
__forceinline__ int __any_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return specc_host::ballot("__any_sync", mask, predicate != 0, line) != 0;
}
__forceinline__ int __all_sync(unsigned mask, int predicate, int line = __builtin_LINE()) {
    return specc_host::ballot("__all_sync", mask, predicate != 0, line) == mask;
}
template <typename T>
__forceinline__ T __shfl_sync(unsigned mask, T value, int source, int width = 32, int line = __builtin_LINE()) {
    const int lane = specc_host::lane();
    return specc_host::shuffle("__shfl_sync", mask, value, (lane & ~(width - 1)) | (source & (width - 1)), line);
}
template <typename T>
__forceinline__ T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, int line = __builtin_LINE()) {
    const int lane = specc_host::lane(), source = lane ^ bits;
    const bool inside = source < (lane & ~(width - 1)) + width;
    return specc_host::shuffle("__shfl_xor_sync", mask, value, inside ? source : lane, line);
}
template <typename T>
__forceinline__ T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int lane = specc_host::lane(), source = lane - int(delta);
    return specc_host::shuffle("__shfl_up_sync", mask, value, source >= (lane & ~(width - 1)) ? source : lane, line);
}
template <typename T>
__forceinline__ T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, int line = __builtin_LINE()) {
    const int lane = specc_host::lane(), source = lane + int(delta);
    const bool inside = source < (lane & ~(width - 1)) + width;
    return specc_host::shuffle("__shfl_down_sync", mask, value, inside ? source : lane, line);
}

// Fibers change over at barriers and in warp operations only, so a plain update is atomic.
template <typename T>
SPECC_PLAIN T atomicAdd(T* address, T value) {
    const T old = specc_host::read_modify(address);
    *address = old + value;
    return old;
}
template <typename T>
SPECC_PLAIN T atomicMax(T* address, T value) {
    const T old = specc_host::read_modify(address);
    if (value > old) *address = value;
    return old;
}
template <typename T>
SPECC_PLAIN T atomicCAS(T* address, T expected, T value) {
    const T old = specc_host::read_modify(address);
    if (old == expected) *address = value;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}

#ifndef SPECC_RUNTIME  // which has the C++ library's own
#include "specc_numbers.h"
#endif
