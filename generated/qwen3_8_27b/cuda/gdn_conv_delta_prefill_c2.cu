// `causalConvSiluFrom` as node gdn_conv_delta_prefill_c2.
//
//     c2[j, i] = if T + j < 3 then c[T + j, i] else x[T + j - 3, i]
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.conv
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    c [3, 10240], cache
// Tensor    x [T, 10240], activation, 64-bit offsets
// Tensor    c2 [3, 10240], cache, result

#include "specc_device.cuh"

namespace qwen3_8_27b {

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) gdn_conv_delta_prefill_c2_kernel(const Element* __restrict__ c_ptr,
    const Element* __restrict__ x_ptr, Element* __restrict__ c2_ptr, int rows, int T, int64_t c_stride_d0,
    int64_t x_stride_d0, int64_t c2_stride_j) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 10240) return;
    const int j = row;
    const auto c_row = c_ptr + (T + j) * c_stride_d0;
    const auto x_row = x_ptr + (T + j - 3) * x_stride_d0;
    const auto c2_row = c2_ptr + j * c2_stride_j;
    const auto c_v = T + j < 3 ? specc::load<VEC>(c_row + i_first) : specc::Vec<Element, VEC>{};
    const auto x_v = T + j >= 3 ? specc::load<VEC>(x_row + i_first) : specc::Vec<Element, VEC>{};
    specc::Vec<Element, VEC> c2_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real c = specc::to_real(c_v.at[n]);
        const real x = specc::to_real(x_v.at[n]);
        const real c2 = T + j < 3 ? c : x;
        c2_v.at[n] = specc::round_to<Element>(c2);
    }
    specc::store(c2_row + i_first, c2_v);
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_conv_delta_prefill_c2_launch(const void* c, const void* x, void* c2, int64_t T,
    int64_t c_stride_d0, int64_t x_stride_d0, int64_t c2_stride_j, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(10240, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(qwen3_8_27b::gdn_conv_delta_prefill_c2_kernel<Element, VEC>, grid, block, 0,
        stream, static_cast<const Element*>(c), static_cast<const Element*>(x), static_cast<Element*>(c2),
        int(rows), int(T), c_stride_d0, x_stride_d0, c2_stride_j);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_conv_delta_prefill_c2(int type, const void* c, const void* x, void* c2,
    int64_t T, int64_t c_stride_d0, int64_t x_stride_d0, int64_t c2_stride_j, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (3 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = 3;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(c) && specc::aligned(x) && specc::aligned(c2) && specc::aligned(c_stride_d0,
            sizeof(Element)) && specc::aligned(x_stride_d0, sizeof(Element)) && specc::aligned(c2_stride_j,
            sizeof(Element))) return gdn_conv_delta_prefill_c2_launch<Element, specc::FULL<Element>>(c, x, c2,
            T, c_stride_d0, x_stride_d0, c2_stride_j, stream, rows);
        return gdn_conv_delta_prefill_c2_launch<Element, 1>(c, x, c2, T, c_stride_d0, x_stride_d0,
            c2_stride_j, stream, rows);
    });
}

#endif
