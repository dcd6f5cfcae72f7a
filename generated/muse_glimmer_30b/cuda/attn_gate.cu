// `sigmoidGate` as node attn_gate.
//
//     y[t, i] = o[t, i] · sigmoid(gate[t, i])
//
// Spec Key  meta-models/Muse-Glimmer-30B@1.0:layers[*].attn.gate
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    o [T, 4096], activation
// Tensor    gate [T, 4096], activation
// Tensor    y [T, 4096], activation, result

#include "specc_device.cuh"

namespace muse_glimmer_30b {

/// sigmoid(x) = 1 / (1 + exp(-x))
/// computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
__device__ __forceinline__ real sigmoid(real x) {
    const real t1 = exp(-fabs(x));
    return (x >= 0 ? 1.0f : t1) / (1.0f + t1);
}

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) attn_gate_kernel(const Element* __restrict__ o_ptr,
    const Element* __restrict__ gate_ptr, Element* __restrict__ y_ptr, int rows, int64_t o_stride_t,
    int64_t gate_stride_t, int64_t y_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 4096) return;
    const int t = row;
    const auto o_row = o_ptr + t * o_stride_t;
    const auto gate_row = gate_ptr + t * gate_stride_t;
    const auto y_row = y_ptr + t * y_stride_t;
    const auto o_v = specc::load<VEC>(o_row + i_first);
    const auto gate_v = specc::load<VEC>(gate_row + i_first);
    specc::Vec<Element, VEC> y_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real o = specc::to_real(o_v.at[n]);
        const real gate = specc::to_real(gate_v.at[n]);
        const real y = o * sigmoid(gate);
        y_v.at[n] = specc::round_to<Element>(y);
    }
    specc::store(y_row + i_first, y_v);
}

}  // namespace muse_glimmer_30b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t attn_gate_launch(const void* o, const void* gate, void* y, int64_t o_stride_t,
    int64_t gate_stride_t, int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(4096, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(muse_glimmer_30b::attn_gate_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(o), static_cast<const Element*>(gate), static_cast<Element*>(y),
        int(rows), o_stride_t, gate_stride_t, y_stride_t);
}

}  // namespace

extern "C" int muse_glimmer_30b_attn_gate(int type, const void* o, const void* gate, void* y, int64_t T,
    int64_t o_stride_t, int64_t gate_stride_t, int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(o) && specc::aligned(gate) && specc::aligned(y) && specc::aligned(o_stride_t,
            sizeof(Element)) && specc::aligned(gate_stride_t, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element))) return attn_gate_launch<Element, specc::FULL<Element>>(o, gate, y, o_stride_t,
            gate_stride_t, y_stride_t, stream, rows);
        return attn_gate_launch<Element, 1>(o, gate, y, o_stride_t, gate_stride_t, y_stride_t, stream, rows);
    });
}

#endif
