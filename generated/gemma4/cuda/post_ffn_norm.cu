// `rmsnorm` as node post_ffn_norm.
//
//     y[t, i] = x[t, i] / √(Σ_j x[t, j]² / 5376 + 1e-06) · w[i]
//
// Spec Key  google/gemma-4-31B@1.0:layers[*].post_ffn_norm
// Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
// Tensor    x [T, 5376], activation
// Tensor    w [5376], weight
// Tensor    y [T, 5376], activation, result

#include "specc_device.cuh"

namespace gemma_4_31b {

/// A block: one row, in vectors of VEC elements.
template <typename Element, int VEC>
__global__ void __launch_bounds__(224, 1) post_ffn_norm_kernel(const Element* __restrict__ x_ptr,
    const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr, int64_t x_stride_t, int64_t y_stride_t) {
    constexpr int LANES = 224, PIECES = specc::ceil_div(5376, LANES * VEC);
    __shared__ real scratch[1][7];
    const int row = blockIdx.x;
    const int lane = threadIdx.x;
    const int t = row;
    const auto x_row = x_ptr + t * x_stride_t;
    const auto y_row = y_ptr + t * y_stride_t;
    specc::Vec<Element, VEC> x_all[PIECES];
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        x_all[piece] = specc::load<VEC>(x_row + i_first);
    }

    real r1_part = specc::Sum::neutral();
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real x = specc::to_real(x_all[piece].at[n]);
            const real r1_term = x * x;
            r1_part = specc::Sum::join(r1_part, r1_term);
        }
    }
    const real r1_raw = specc::reduce_block<specc::Sum, 7>(r1_part, scratch[0]);
    const real r1 = 1.0f / sqrt(r1_raw / 5376.0f + real(1e-06));

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        const auto w_v = specc::load<VEC>(w_ptr + i_first);
        specc::Vec<Element, VEC> y_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real x = specc::to_real(x_all[piece].at[n]);
            const real w = specc::to_real(w_v.at[n]);
            const real y = x * r1 * w;
            y_v.at[n] = specc::round_to<Element>(y);
        }
        specc::store(y_row + i_first, y_v);
    }
}

}  // namespace gemma_4_31b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t post_ffn_norm_launch(const void* x, const void* w, void* y, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    const specc::Grid grid{specc::ceil_div(rows, 1)};
    const dim3 block(224, 1);
    return specc::launch(gemma_4_31b::post_ffn_norm_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(x), static_cast<const Element*>(w), static_cast<Element*>(y), x_stride_t,
        y_stride_t);
}

}  // namespace

extern "C" int gemma_4_31b_post_ffn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(w) && specc::aligned(y) && specc::aligned(x_stride_t,
            sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element))) return post_ffn_norm_launch<Element, specc::FULL<Element>>(x, w, y, x_stride_t,
            y_stride_t, stream, rows);
        return post_ffn_norm_launch<Element, 1>(x, w, y, x_stride_t, y_stride_t, stream, rows);
    });
}

#endif
