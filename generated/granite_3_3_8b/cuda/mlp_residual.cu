// `residual` as node mlp_residual.
//
//     y[t, i] = x[t, i] + 0.22 · h[t, i]
//
// Spec Key  ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].mlp_residual
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    x [T, 4096], activation
// Tensor    h [T, 4096], activation
// Tensor    y [T, 4096], activation, result

#include "specc_device.cuh"

namespace granite_3_3_8b_instruct {

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) mlp_residual_kernel(const Element* __restrict__ x_ptr,
    const Element* __restrict__ h_ptr, Element* __restrict__ y_ptr, int rows, int64_t x_stride_t,
    int64_t h_stride_t, int64_t y_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 4096) return;
    const int t = row;
    const auto x_row = x_ptr + t * x_stride_t;
    const auto h_row = h_ptr + t * h_stride_t;
    const auto y_row = y_ptr + t * y_stride_t;
    const auto x_v = specc::load<VEC>(x_row + i_first);
    const auto h_v = specc::load<VEC>(h_row + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real x = specc::to_real(x_v.at[n]);
        const real h = specc::to_real(h_v.at[n]);
        const real y = x + real(0.22) * h;
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace granite_3_3_8b_instruct

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t mlp_residual_launch(const void* x, const void* h, void* y, int64_t x_stride_t,
    int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(4096, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(granite_3_3_8b_instruct::mlp_residual_kernel<Element, VEC>, grid, block, 0,
        stream, static_cast<const Element*>(x), static_cast<const Element*>(h), static_cast<Element*>(y),
        int(rows), x_stride_t, h_stride_t, y_stride_t);
}

}  // namespace

extern "C" int granite_3_3_8b_instruct_mlp_residual(int type, const void* x, const void* h, void* y,
    int64_t T, int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(h) && specc::aligned(y) && specc::aligned(x_stride_t,
            sizeof(Element)) && specc::aligned(h_stride_t, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element))) return mlp_residual_launch<Element, specc::FULL<Element>>(x, h, y, x_stride_t,
            h_stride_t, y_stride_t, stream, rows);
        return mlp_residual_launch<Element, 1>(x, h, y, x_stride_t, h_stride_t, y_stride_t, stream, rows);
    });
}

#endif
