// `siluMul` as node mlp_act.
//
//     y[t, i] = silu(gu[t, i]) · gu[t, 19968 + i]
//
// Spec Key  meta-models/Muse-Glimmer-30B@1.0:layers[*].mlp.act
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    gu [T, 39936], activation, 64-bit offsets
// Tensor    y [T, 19968], activation, result, 64-bit offsets

#include "specc_device.cuh"

namespace muse_glimmer_30b {

/// sigmoid(x) = 1 / (1 + exp(-x))
/// computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
__device__ __forceinline__ real sigmoid(real x) {
    const real t1 = exp(-fabs(x));
    return (x >= 0 ? 1.0f : t1) / (1.0f + t1);
}

/// silu(x) = x · sigmoid(x)
__device__ __forceinline__ real silu(real x) {
    return x * sigmoid(x);
}

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) mlp_act_kernel(const Element* __restrict__ gu_ptr,
    Element* __restrict__ y_ptr, int rows, int64_t gu_stride_t, int64_t y_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 19968) return;
    const int t = row;
    const auto gu_row = gu_ptr + t * gu_stride_t;
    const auto y_row = y_ptr + t * y_stride_t;
    const auto gu_v = specc::load<VEC>(gu_row + i_first);
    const auto gu_p19968_v = specc::load<VEC>(gu_row + i_first + 19968);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real gu = specc::to_real(gu_v.at[n]);
        const real gu_p19968 = specc::to_real(gu_p19968_v.at[n]);
        const real y = silu(gu) * gu_p19968;
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace muse_glimmer_30b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t mlp_act_launch(const void* gu, void* y, int64_t gu_stride_t, int64_t y_stride_t,
    cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(19968, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(muse_glimmer_30b::mlp_act_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(gu), static_cast<Element*>(y), int(rows), gu_stride_t, y_stride_t);
}

}  // namespace

extern "C" int muse_glimmer_30b_mlp_act(int type, const void* gu, void* y, int64_t T, int64_t gu_stride_t,
    int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(gu) && specc::aligned(y) && specc::aligned(gu_stride_t, sizeof(Element)) &&
            specc::aligned(y_stride_t, sizeof(Element))) return mlp_act_launch<Element,
            specc::FULL<Element>>(gu, y, gu_stride_t, y_stride_t, stream, rows);
        return mlp_act_launch<Element, 1>(gu, y, gu_stride_t, y_stride_t, stream, rows);
    });
}

#endif
