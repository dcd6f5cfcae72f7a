// `embed` as node embed.
//
//     y[t, i] = 1 · w[tokens[t], i] / √(Σ_j w[tokens[t], j]² / 6656 + 1e-05)
//
// Spec Key  meta-models/Muse-Glimmer-30B@1.0:embed
// Schedule  row_reduction: every reduction runs over the whole row: Σ over `i`
// Tensor    tokens [T], int32 or int64
// Tensor    w [202048, 6656], weight
// Tensor    y [T, 6656], activation, result

#include "specc_device.cuh"

namespace muse_glimmer_30b {

/// A block: one row, in vectors of VEC elements.
template <typename Element, int VEC>
__global__ void __launch_bounds__(224, 1) embed_kernel(int index_bytes,
    const void* __restrict__ tokens_ptr, const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr,
    int64_t w_stride_tokens, int64_t y_stride_t) {
    constexpr int LANES = 224, PIECES = specc::ceil_div(6656, LANES * VEC);
    __shared__ real scratch[1][7];
    const int row = blockIdx.x;
    const int lane = threadIdx.x;
    const int t = row;
    const int64_t tokens = specc::index_at(tokens_ptr, index_bytes, t);
    const bool w_found = tokens >= 0 && tokens < 202048;
    const real w_valid = w_found ? 1.0f : specc::not_a_number();
    const auto w_row = w_ptr + (w_found ? tokens : 0) * w_stride_tokens;
    const auto y_row = y_ptr + t * y_stride_t;
    specc::Vec<Element, VEC> w_all[PIECES];
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        w_all[piece] = i_first < 6656 ? specc::load<VEC>(w_row + i_first) : specc::Vec<Element, VEC>{};
    }

    real r1_part = specc::Sum::neutral();
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const int i = i_first + n;
            const real w = specc::to_real(w_all[piece].at[n]) * w_valid;
            const real r1_term = w * w;
            if (i < 6656) r1_part = specc::Sum::join(r1_part, r1_term);
        }
    }
    const real r1_raw = specc::reduce_block<specc::Sum, 7>(r1_part, scratch[0]);
    const real r1 = 1.0f / sqrt(r1_raw / 6656.0f + real(1e-05));

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int i_first = (piece * LANES + lane) * VEC;
        if (!(i_first < 6656)) continue;
        specc::Vec<Element, VEC> y_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real w = specc::to_real(w_all[piece].at[n]) * w_valid;
            const real y = w * r1;
            y_v.at[n] = specc::round_to<Element>(y);
        }
        specc::store(y_row + i_first, y_v);
    }
}

}  // namespace muse_glimmer_30b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t embed_launch(int index_bytes, const void* tokens, const void* w, void* y,
    int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    const specc::Grid grid{specc::ceil_div(rows, 1)};
    const dim3 block(224, 1);
    return specc::launch(muse_glimmer_30b::embed_kernel<Element, VEC>, grid, block, 0, stream,
        index_bytes, tokens, static_cast<const Element*>(w), static_cast<Element*>(y), w_stride_tokens,
        y_stride_t);
}

}  // namespace

extern "C" int muse_glimmer_30b_embed(int type, int index_bytes, const void* tokens, const void* w,
    void* y, int64_t T, int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream) {
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
