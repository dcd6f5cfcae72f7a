// `embed` as node embed.
//
//     y[t, i] = √640 · w[tokens[t], i]
//
// Spec Key  google/gemma-3-270m@1.0:embed
// Schedule  gather: no reduction: each element of `i` stands alone
// Tensor    tokens [T], int32 or int64
// Tensor    w [262144, 640], weight
// Tensor    y [T, 640], activation, result

#include "specc_device.cuh"

namespace gemma_3_270m {

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) embed_kernel(int index_bytes, const void* __restrict__ tokens_ptr,
    const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr, int rows, int64_t w_stride_tokens,
    int64_t y_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 640) return;
    const int t = row;
    const int64_t tokens = specc::index_at(tokens_ptr, index_bytes, t);
    const bool w_found = tokens >= 0 && tokens < 262144;
    const real w_valid = w_found ? 1.0f : specc::not_a_number();
    const auto w_row = w_ptr + (w_found ? tokens : 0) * w_stride_tokens;
    const auto y_row = y_ptr + t * y_stride_t;
    const auto w_v = specc::load<VEC>(w_row + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real w = specc::to_real(w_v.at[n]) * w_valid;
        const real y = specc::rounded<Element>(real(25.298221281347036)) * w;
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace gemma_3_270m

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t embed_launch(int index_bytes, const void* tokens, const void* w, void* y,
    int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(640, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(gemma_3_270m::embed_kernel<Element, VEC>, grid, block, 0, stream, index_bytes,
        tokens, static_cast<const Element*>(w), static_cast<Element*>(y), int(rows), w_stride_tokens,
        y_stride_t);
}

}  // namespace

extern "C" int gemma_3_270m_embed(int type, int index_bytes, const void* tokens, const void* w, void* y,
    int64_t T, int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (index_bytes != 4 && index_bytes != 8) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(w) && specc::aligned(y) && specc::aligned(w_stride_tokens, sizeof(Element)) &&
            specc::aligned(y_stride_t, sizeof(Element))) return embed_launch<Element,
            specc::FULL<Element>>(index_bytes, tokens, w, y, w_stride_tokens, y_stride_t, stream, rows);
        return embed_launch<Element, 1>(index_bytes, tokens, w, y, w_stride_tokens, y_stride_t, stream, rows);
    });
}

#endif
