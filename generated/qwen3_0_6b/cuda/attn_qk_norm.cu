// `rmsnorm` as node attn_qk_norm.
//
//     y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 128 + 1e-06) · w[i]
//
// Spec Key  Qwen/Qwen3-0.6B@1.0:layers[*].attn.qk_norm
// Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
// Tensor    x [T, rows_1, 128], activation
// Tensor    w [128], weight
// Tensor    y [T, rows_1, 128], activation, result

#include "specc_device.cuh"

namespace qwen3_0_6b {

/// A block: 8 rows, 16 threads each, in vectors of VEC elements.
template <typename Element, int VEC>
__global__ void __launch_bounds__(128, 1) attn_qk_norm_kernel(const Element* __restrict__ x_ptr,
    const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr, int rows, int rows_1, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h) {
    constexpr int LANES = 16, PIECES = specc::ceil_div(128, LANES * VEC);
    const int own_row = blockIdx.x * 8 + threadIdx.y;
    const bool row_in = own_row < rows;
    const int row = row_in ? own_row : rows - 1;
    const int lane = threadIdx.x;
    const int h = row % rows_1;
    const int t = row / rows_1;
    const auto x_row = x_ptr + t * x_stride_t + h * x_stride_h;
    const auto y_row = y_ptr + t * y_stride_t + h * y_stride_h;
    specc::Vec<Element, VEC> x_all[PIECES];
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        x_all[piece] = row_in ? specc::load<VEC>(x_row + i_first) : specc::Vec<Element, VEC>{};
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
    const real r1_raw = specc::reduce_lanes<specc::Sum, 16>(r1_part);
    const real r1 = 1.0f / sqrt(r1_raw / 128.0f + real(1e-06));

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        if (!(row_in)) continue;
        const auto w_v = row_in ? specc::load<VEC>(w_ptr + i_first) : specc::Vec<Element, VEC>{};
        specc::Vec<Element, VEC> y_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real x = specc::to_real(x_all[piece].at[n]);
            const real w = specc::to_real(w_v.at[n]);
            const real y = specc::rounded<Element>(x * r1) * w;
            y_v.at[n] = specc::round_to<Element>(y);
        }
        specc::store(y_row + i_first, y_v);
    }
}

}  // namespace qwen3_0_6b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t attn_qk_norm_launch(const void* x, const void* w, void* y, int64_t rows_1, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream, int64_t rows) {
    const specc::Grid grid{specc::ceil_div(rows, 8)};
    const dim3 block(16, 8);
    return specc::launch(qwen3_0_6b::attn_qk_norm_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(x), static_cast<const Element*>(w), static_cast<Element*>(y), int(rows),
        int(rows_1), x_stride_t, x_stride_h, y_stride_t, y_stride_h);
}

}  // namespace

extern "C" int qwen3_0_6b_attn_qk_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream) {
    if (!specc::sizes_fit({T, rows_1})) return cudaErrorInvalidValue;
    if (1.0 * T * rows_1 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T * rows_1;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(w) && specc::aligned(y) && specc::aligned(x_stride_t,
            sizeof(Element)) && specc::aligned(x_stride_h, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element)) && specc::aligned(y_stride_h,
            sizeof(Element))) return attn_qk_norm_launch<Element, specc::FULL<Element>>(x, w, y, rows_1,
            x_stride_t, x_stride_h, y_stride_t, y_stride_h, stream, rows);
        return attn_qk_norm_launch<Element, 1>(x, w, y, rows_1, x_stride_t, x_stride_h, y_stride_t,
            y_stride_h, stream, rows);
    });
}

#endif
