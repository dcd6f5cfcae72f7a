// `rmsnormUnit` as node attn_v_norm_sliding.
//
//     y[t, h, i] = x[t, h, i] / √(Σ_j x[t, h, j]² / 256 + 1e-06)
//
// Spec Key  google/gemma-4-31B@1.0:layers[*].attn.v_norm
// Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
// Tensor    x [T, 16, 256], activation, 64-bit offsets
// Tensor    y [T, 16, 256], activation, result

#include "specc_device.cuh"

namespace gemma_4_31b {

/// A block: 4 rows, 32 threads each, in vectors of VEC elements.
template <typename Element, int VEC>
__global__ void __launch_bounds__(128, 1) attn_v_norm_sliding_kernel(const Element* __restrict__ x_ptr,
    Element* __restrict__ y_ptr, int rows, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t,
    int64_t y_stride_h) {
    constexpr int LANES = 32, PIECES = specc::ceil_div(256, LANES * VEC);
    const int own_row = blockIdx.x * 4 + threadIdx.y;
    const bool row_in = own_row < rows;
    const int row = row_in ? own_row : rows - 1;
    const int lane = threadIdx.x;
    const int h = row % 16;
    const int t = row / 16;
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
    const real r1_raw = specc::reduce_lanes<specc::Sum, 32>(r1_part);
    const real r1 = 1.0f / sqrt(r1_raw / 256.0f + real(1e-06));

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        if (!(row_in)) continue;
        specc::Vec<Element, VEC> y_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real x = specc::to_real(x_all[piece].at[n]);
            const real y = x * r1;
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
cudaError_t attn_v_norm_sliding_launch(const void* x, void* y, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream, int64_t rows) {
    const specc::Grid grid{specc::ceil_div(rows, 4)};
    const dim3 block(32, 4);
    return specc::launch(gemma_4_31b::attn_v_norm_sliding_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(x), static_cast<Element*>(y), int(rows), x_stride_t, x_stride_h,
        y_stride_t, y_stride_h);
}

}  // namespace

extern "C" int gemma_4_31b_attn_v_norm_sliding(int type, const void* x, void* y, int64_t T,
    int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (1.0 * T * 16 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T * 16;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(y) && specc::aligned(x_stride_t, sizeof(Element)) &&
            specc::aligned(x_stride_h, sizeof(Element)) && specc::aligned(y_stride_t, sizeof(Element)) &&
            specc::aligned(y_stride_h, sizeof(Element))) return attn_v_norm_sliding_launch<Element,
            specc::FULL<Element>>(x, y, x_stride_t, x_stride_h, y_stride_t, y_stride_h, stream, rows);
        return attn_v_norm_sliding_launch<Element, 1>(x, y, x_stride_t, x_stride_h, y_stride_t,
            y_stride_h, stream, rows);
    });
}

#endif
