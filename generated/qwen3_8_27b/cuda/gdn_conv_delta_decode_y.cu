// `causalConvSiluStep` as node gdn_conv_delta_decode_y.
//
//     y[b, i] = silu(Σ_j w[i, j] · (if j < 3 then c[b, j, i] else x[b, i]))
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
// Schedule  pointwise: short sums written out; no reduction: each element of `i` stands alone
// Tensor    c [B, 3, 10240], cache
// Tensor    x [B, 10240], activation
// Tensor    w [10240, 4], weight
// Tensor    y [B, 10240], activation, result

#include "specc_device.cuh"

namespace qwen3_8_27b {

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
__global__ void __launch_bounds__(256) gdn_conv_delta_decode_y_kernel(const Element* __restrict__ c_ptr,
    const Element* __restrict__ x_ptr, const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr,
    int rows, int64_t c_stride_b, int64_t c_stride_d1, int64_t x_stride_b, int64_t w_stride_i,
    int64_t y_stride_b) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 10240) return;
    const int b = row;
    const auto c_row = c_ptr + b * c_stride_b;
    const auto c_row_2 = c_ptr + b * c_stride_b + 1 * c_stride_d1;
    const auto c_row_3 = c_ptr + b * c_stride_b + 2 * c_stride_d1;
    const auto x_row = x_ptr + b * x_stride_b;
    const auto y_row = y_ptr + b * y_stride_b;
    const auto c_v = specc::load<VEC>(c_row + i_first);
    const auto c_2_v = specc::load<VEC>(c_row_2 + i_first);
    const auto c_3_v = specc::load<VEC>(c_row_3 + i_first);
    const auto x_v = specc::load<VEC>(x_row + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const int i = i_first + n;
        const real w = specc::to_real(w_ptr[i * w_stride_i]);
        const real c = specc::to_real(c_v.at[n]);
        const real w_2 = specc::to_real(w_ptr[i * w_stride_i + 1]);
        const real c_2 = specc::to_real(c_2_v.at[n]);
        const real w_3 = specc::to_real(w_ptr[i * w_stride_i + 2]);
        const real c_3 = specc::to_real(c_3_v.at[n]);
        const real w_4 = specc::to_real(w_ptr[i * w_stride_i + 3]);
        const real x = specc::to_real(x_v.at[n]);
        const real y = silu(w * c + w_2 * c_2 + w_3 * c_3 + w_4 * x);
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_conv_delta_decode_y_launch(const void* c, const void* x, const void* w, void* y,
    int64_t c_stride_b, int64_t c_stride_d1, int64_t x_stride_b, int64_t w_stride_i, int64_t y_stride_b,
    cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(10240, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(qwen3_8_27b::gdn_conv_delta_decode_y_kernel<Element, VEC>, grid, block, 0,
        stream, static_cast<const Element*>(c), static_cast<const Element*>(x),
        static_cast<const Element*>(w), static_cast<Element*>(y), int(rows), c_stride_b, c_stride_d1,
        x_stride_b, w_stride_i, y_stride_b);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_conv_delta_decode_y(int type, const void* c, const void* x, const void* w,
    void* y, int64_t B, int64_t c_stride_b, int64_t c_stride_d1, int64_t x_stride_b, int64_t w_stride_i,
    int64_t y_stride_b, cudaStream_t stream) {
    if (!specc::sizes_fit({B})) return cudaErrorInvalidValue;
    if (B > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = B;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(c) && specc::aligned(x) && specc::aligned(y) && specc::aligned(c_stride_b,
            sizeof(Element)) && specc::aligned(c_stride_d1, sizeof(Element)) && specc::aligned(x_stride_b,
            sizeof(Element)) && specc::aligned(y_stride_b,
            sizeof(Element))) return gdn_conv_delta_decode_y_launch<Element, specc::FULL<Element>>(c, x, w, y,
            c_stride_b, c_stride_d1, x_stride_b, w_stride_i, y_stride_b, stream, rows);
        return gdn_conv_delta_decode_y_launch<Element, 1>(c, x, w, y, c_stride_b, c_stride_d1, x_stride_b,
            w_stride_i, y_stride_b, stream, rows);
    });
}

#endif
