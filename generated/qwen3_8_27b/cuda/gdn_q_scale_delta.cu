// `scaled` as node gdn_q_scale_delta.
//
//     y[t, h, i] = 1 / √128 · x[t, h, i]
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.q_scale
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    x [T, 16, 128], activation
// Tensor    y [T, 16, 128], activation, result

#include "specc_device.cuh"

namespace qwen3_8_27b {

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) gdn_q_scale_delta_kernel(const Element* __restrict__ x_ptr,
    Element* __restrict__ y_ptr, int rows, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t,
    int64_t y_stride_h) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 128) return;
    const int h = row % 16;
    const int t = row / 16;
    const auto x_row = x_ptr + t * x_stride_t + h * x_stride_h;
    const auto y_row = y_ptr + t * y_stride_t + h * y_stride_h;
    const auto x_v = specc::load<VEC>(x_row + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real x = specc::to_real(x_v.at[n]);
        const real y = real(0.08838834764831843) * x;
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_q_scale_delta_launch(const void* x, void* y, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(128, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(qwen3_8_27b::gdn_q_scale_delta_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(x), static_cast<Element*>(y), int(rows), x_stride_t, x_stride_h,
        y_stride_t, y_stride_h);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_q_scale_delta(int type, const void* x, void* y, int64_t T,
    int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (1.0 * T * 16 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T * 16;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(y) && specc::aligned(x_stride_t, sizeof(Element)) &&
            specc::aligned(x_stride_h, sizeof(Element)) && specc::aligned(y_stride_t, sizeof(Element)) &&
            specc::aligned(y_stride_h, sizeof(Element))) return gdn_q_scale_delta_launch<Element,
            specc::FULL<Element>>(x, y, x_stride_t, x_stride_h, y_stride_t, y_stride_h, stream, rows);
        return gdn_q_scale_delta_launch<Element, 1>(x, y, x_stride_t, x_stride_h, y_stride_t, y_stride_h,
            stream, rows);
    });
}

#endif
