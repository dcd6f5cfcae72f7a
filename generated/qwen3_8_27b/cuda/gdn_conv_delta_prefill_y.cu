// `causalConvSiluFrom` as node gdn_conv_delta_prefill_y.
//
//     y[t, i] = silu(Σ_j w[i, j] · (if t + j < 3 then c[t + j, i] else x[t + j - 3, i]))
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    c [3, 10240], cache
// Tensor    x [T, 10240], activation, 64-bit offsets
// Tensor    w [10240, 4], weight
// Tensor    y [T, 10240], activation, result, 64-bit offsets

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
__global__ void __launch_bounds__(256) gdn_conv_delta_prefill_y_kernel(const Element* __restrict__ c_ptr,
    const Element* __restrict__ x_ptr, const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr,
    int rows, int64_t c_stride_d0, int64_t x_stride_d0, int64_t w_stride_i, int64_t y_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 10240) return;
    const int t = row;
    const auto c_row = c_ptr + t * c_stride_d0;
    const auto x_row = x_ptr + (t - 3) * x_stride_d0;
    const auto c_row_2 = c_ptr + (t + 1) * c_stride_d0;
    const auto x_row_2 = x_ptr + (t - 2) * x_stride_d0;
    const auto c_row_3 = c_ptr + (t + 2) * c_stride_d0;
    const auto x_row_3 = x_ptr + (t - 1) * x_stride_d0;
    const auto x_row_4 = x_ptr + t * x_stride_d0;
    const auto y_row = y_ptr + t * y_stride_t;
    const auto c_v = t < 3 ? specc::load<VEC>(c_row + i_first) : specc::Vec<Element, VEC>{};
    const auto x_v = t >= 3 ? specc::load<VEC>(x_row + i_first) : specc::Vec<Element, VEC>{};
    const auto c_2_v = t + 1 < 3 ? specc::load<VEC>(c_row_2 + i_first) : specc::Vec<Element, VEC>{};
    const auto x_2_v = t + 1 >= 3 ? specc::load<VEC>(x_row_2 + i_first) : specc::Vec<Element, VEC>{};
    const auto c_3_v = t + 2 < 3 ? specc::load<VEC>(c_row_3 + i_first) : specc::Vec<Element, VEC>{};
    const auto x_3_v = t + 2 >= 3 ? specc::load<VEC>(x_row_3 + i_first) : specc::Vec<Element, VEC>{};
    const auto x_4_v = specc::load<VEC>(x_row_4 + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const int i = i_first + n;
        const real w = specc::to_real(w_ptr[i * w_stride_i]);
        const real c = specc::to_real(c_v.at[n]);
        const real x = specc::to_real(x_v.at[n]);
        const real w_2 = specc::to_real(w_ptr[i * w_stride_i + 1]);
        const real c_2 = specc::to_real(c_2_v.at[n]);
        const real x_2 = specc::to_real(x_2_v.at[n]);
        const real w_3 = specc::to_real(w_ptr[i * w_stride_i + 2]);
        const real c_3 = specc::to_real(c_3_v.at[n]);
        const real x_3 = specc::to_real(x_3_v.at[n]);
        const real w_4 = specc::to_real(w_ptr[i * w_stride_i + 3]);
        const real x_4 = specc::to_real(x_4_v.at[n]);
        const real y = silu(w * (t < 3 ? c : x) + w_2 * (t + 1 < 3 ? c_2 : x_2) + w_3 * (t + 2 < 3 ? c_3 :
            x_3) + w_4 * x_4);
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_conv_delta_prefill_y_launch(const void* c, const void* x, const void* w, void* y,
    int64_t c_stride_d0, int64_t x_stride_d0, int64_t w_stride_i, int64_t y_stride_t, cudaStream_t stream,
    int64_t rows) {
    constexpr int PIECES = specc::ceil_div(10240, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(qwen3_8_27b::gdn_conv_delta_prefill_y_kernel<Element, VEC>, grid, block, 0,
        stream, static_cast<const Element*>(c), static_cast<const Element*>(x),
        static_cast<const Element*>(w), static_cast<Element*>(y), int(rows), c_stride_d0, x_stride_d0,
        w_stride_i, y_stride_t);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_conv_delta_prefill_y(int type, const void* c, const void* x, const void* w,
    void* y, int64_t T, int64_t c_stride_d0, int64_t x_stride_d0, int64_t w_stride_i, int64_t y_stride_t,
    cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(c) && specc::aligned(x) && specc::aligned(y) && specc::aligned(c_stride_d0,
            sizeof(Element)) && specc::aligned(x_stride_d0, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element))) return gdn_conv_delta_prefill_y_launch<Element, specc::FULL<Element>>(c, x, w,
            y, c_stride_d0, x_stride_d0, w_stride_i, y_stride_t, stream, rows);
        return gdn_conv_delta_prefill_y_launch<Element, 1>(c, x, w, y, c_stride_d0, x_stride_d0,
            w_stride_i, y_stride_t, stream, rows);
    });
}

#endif
