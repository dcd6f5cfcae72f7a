// What launch wrappers share. They are for the host: NVRTC does not see them.
#pragma once

#include <initializer_list>

#include "specc_device.cuh"

namespace specc {

/// The largest size of an axis, and the most rows: 32 bits hold them, and one tile more.
constexpr int64_t MOST = 1 << 30, MOST_ROWS = 0x7fff0000;
inline bool sizes_fit(std::initializer_list<int64_t> sizes) {
    for (const int64_t s : sizes)
        if (s < 0 || s > MOST) return false;
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

/// Blocks of a launch. A `dim3` would cut off what has more than 32 bits.
struct Grid {
    int64_t x, y = 1, z = 1;
    bool fits() const { return x >= 0 && y >= 0 && z >= 0 && x <= 0x7fffffff && y <= 0xffff && z <= 0xffff; }
};

/// cudaErrorInvalidValue where there are more blocks than a launch can have.
template <typename... P, typename... A>
cudaError_t launch(void (*kernel)(P...), Grid blocks, dim3 block, size_t shared_bytes, cudaStream_t stream, A... arguments) {
    if (!blocks.fits()) return cudaErrorInvalidValue;
    const dim3 grid{unsigned(blocks.x), unsigned(blocks.y), unsigned(blocks.z)};
#ifdef SPECC_HOST
    (void)stream;
    auto run = [&](P... given) {
        auto call = [=]() SPECC_PLAIN { kernel(given...); };
        auto invoke = [](void* c) SPECC_PLAIN { (*static_cast<decltype(call)*>(c))(); };
        const void* values[] = {&given...};
        const size_t sizes[] = {sizeof(given)...};
        const specc_host::Arguments all{values, sizes, sizeof...(given)};
        return specc_host::launch(reinterpret_cast<const void*>(kernel), invoke, &call, all, grid, block, shared_bytes);
    };
#else
    auto run = [&](P... given) {
        const void* function = reinterpret_cast<const void*>(kernel);
        // A kernel has 48 KB for static and dynamic memory together, unless it asks for more.
        if (shared_bytes) {
            const auto error = cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes));
            if (error != cudaSuccess) return error;
        }
        void* values[] = {&given...};
        return cudaLaunchKernel(function, grid, block, values, shared_bytes, stream);
    };
#endif
    return run(static_cast<P>(arguments)...);
}

}  // namespace specc
