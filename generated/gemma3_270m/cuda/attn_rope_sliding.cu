// `rope` as node attn_rope_sliding.
//
//     y[t, h, i] = if i < 128 then x[t, h, i] · cos(pos[t] · invFreq(10000, 256, 128, i)) - x[t, h, i + 128] ·
//         sin(pos[t] · invFreq(10000, 256, 128, i)) else if i < 256 then x[t, h, i] · cos(pos[t] ·
//         invFreq(10000, 256, 128, i - 128)) + x[t, h, i - 128] · sin(pos[t] · invFreq(10000, 256, 128, i -
//         128)) else x[t, h, i]
//
// Spec Key  google/gemma-3-270m@1.0:layers[*].attn.rope
// Schedule  pointwise: no reduction: each element of `i` stands alone, cut at 128
// Tensor    x [T, rows_1, 256], activation
// Tensor    pos [T], int32 or int64
// Tensor    y [T, rows_1, 256], activation, result
// Table     table_[i] = 10000^(-(2 · i / 256)) for i < 128, float64

#include "specc_device.cuh"

namespace gemma_3_270m {

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) attn_rope_sliding_kernel(int index_bytes,
    const Element* __restrict__ x_ptr, const void* __restrict__ pos_ptr, Element* __restrict__ y_ptr,
    const double* __restrict__ table__ptr, int rows, int rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 128) return;
    const int h = row % rows_1;
    const int t = row / rows_1;
    const int64_t pos = specc::index_at(pos_ptr, index_bytes, t);
    const auto x_row = x_ptr + t * x_stride_t + h * x_stride_h;
    const auto y_row = y_ptr + t * y_stride_t + h * y_stride_h;
    const auto x_v = specc::load<VEC>(x_row + i_first);
    const auto table__v = specc::load<VEC>(table__ptr + i_first);
    const auto x_p128_v = specc::load<VEC>(x_row + i_first + 128);
    specc::Vec<Element, VEC> y_v;
    specc::Vec<Element, VEC> y_v_2;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real x = specc::to_real(x_v.at[n]);
        const double table_ = table__v.at[n];
        const real x_p128 = specc::to_real(x_p128_v.at[n]);
        const double t1 = double(pos) * table_;
        const real t2 = specc::cosine(t1, real());
        const real t3 = specc::sine(t1, real());
        const real y = x * t2 - x_p128 * t3;
        const real y_2 = x_p128 * t2 + x * t3;
        y_v.at[n] = specc::round_to<Element>(y);
        y_v_2.at[n] = specc::round_to<Element>(y_2);
    }
    specc::store(y_row + i_first, y_v);
    specc::store(y_row + i_first + 128, y_v_2);
}

}  // namespace gemma_3_270m

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t attn_rope_sliding_launch(int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t,
    int64_t y_stride_h, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(128, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(gemma_3_270m::attn_rope_sliding_kernel<Element, VEC>, grid, block, 0, stream,
        index_bytes, static_cast<const Element*>(x), pos, static_cast<Element*>(y), table_, int(rows),
        int(rows_1), x_stride_t, x_stride_h, y_stride_t, y_stride_h);
}

}  // namespace

/// table_[i] = 10000^(-(2 · i / 256)) for i < 128.
extern "C" void gemma_3_270m_attn_rope_sliding_table_(double* table) {
    for (int i = 0; i < 128; ++i) table[i] = pow(10000.0, double(-(double(2 * i) / 256.0)));
}

extern "C" int gemma_3_270m_attn_rope_sliding(int type, int index_bytes, const void* x, const void* pos,
    void* y, const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({T, rows_1})) return cudaErrorInvalidValue;
    if (index_bytes != 4 && index_bytes != 8) return cudaErrorInvalidValue;
    if (1.0 * T * rows_1 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T * rows_1;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(table_) && specc::aligned(y) && specc::aligned(x_stride_t,
            sizeof(Element)) && specc::aligned(x_stride_h, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element)) && specc::aligned(y_stride_h,
            sizeof(Element))) return attn_rope_sliding_launch<Element, specc::FULL<Element>>(index_bytes, x,
            pos, y, table_, rows_1, x_stride_t, x_stride_h, y_stride_t, y_stride_h, stream, rows);
        return attn_rope_sliding_launch<Element, 1>(index_bytes, x, pos, y, table_, rows_1, x_stride_t,
            x_stride_h, y_stride_t, y_stride_h, stream, rows);
    });
}

#endif
