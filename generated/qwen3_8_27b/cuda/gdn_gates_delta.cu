// `gdnGates` as node gdn_gates_delta.
//
//     alpha[t, i] = exp(-exp(A_log[i]) · softplus(a[t, i] + dt_bias[i]))
//     beta[t, i] = sigmoid(b[t, i])
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.gates
// Schedule  pointwise: no reduction: each element of `i` stands alone
// Tensor    a [T, 48], activation, 64-bit offsets
// Tensor    b [T, 48], activation, 64-bit offsets
// Tensor    A_log [48], weight
// Tensor    dt_bias [48], weight
// Tensor    alpha [T, 48], accumulator, result
// Tensor    beta [T, 48], accumulator, result

#include "specc_device.cuh"

namespace qwen3_8_27b {

/// softplus(x) = log(1 + exp(x))
/// computed as max(x, 0) + log1p(exp(-abs(x)))
__device__ __forceinline__ real softplus(real x) {
    return fmax(x, real(0.0f)) + log1p(exp(-fabs(x)));
}

/// sigmoid(x) = 1 / (1 + exp(-x))
/// computed as (if x ≥ 0 then 1 else exp(-abs(x))) / (1 + exp(-abs(x)))
__device__ __forceinline__ real sigmoid(real x) {
    const real t1 = exp(-fabs(x));
    return (x >= 0 ? 1.0f : t1) / (1.0f + t1);
}

/// A thread: VEC neighbouring columns of one row.
template <typename Element, int VEC>
__global__ void __launch_bounds__(256) gdn_gates_delta_kernel(const Element* __restrict__ a_ptr,
    const Element* __restrict__ b_ptr, const Element* __restrict__ A_log_ptr,
    const Element* __restrict__ dt_bias_ptr, specc::Accumulator<Element>* __restrict__ alpha_ptr,
    specc::Accumulator<Element>* __restrict__ beta_ptr, int rows, int64_t a_stride_t, int64_t b_stride_t,
    int64_t alpha_stride_t, int64_t beta_stride_t) {
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int i_first = (blockIdx.y * blockDim.x + threadIdx.x) * VEC;
    if (row >= rows || i_first >= 48) return;
    const int t = row;
    const auto a_row = a_ptr + t * a_stride_t;
    const auto b_row = b_ptr + t * b_stride_t;
    const auto alpha_row = alpha_ptr + t * alpha_stride_t;
    const auto beta_row = beta_ptr + t * beta_stride_t;
    const auto A_log_v = specc::load<VEC>(A_log_ptr + i_first);
    const auto a_v = specc::load<VEC>(a_row + i_first);
    const auto dt_bias_v = specc::load<VEC>(dt_bias_ptr + i_first);
    const auto b_v = specc::load<VEC>(b_row + i_first);
    specc::Vec<specc::Accumulator<Element>, VEC> alpha_v;
    specc::Vec<specc::Accumulator<Element>, VEC> beta_v;
#pragma unroll
    for (int n = 0; n < VEC; ++n) {
        const real A_log = specc::to_real(A_log_v.at[n]);
        const real a = specc::to_real(a_v.at[n]);
        const real dt_bias = specc::to_real(dt_bias_v.at[n]);
        const real b = specc::to_real(b_v.at[n]);
        const real alpha = exp(-exp(A_log) * softplus(a + dt_bias));
        const real beta = sigmoid(b);
        alpha_v.at[n] = specc::round_to<specc::Accumulator<Element>>(alpha);
        beta_v.at[n] = specc::round_to<specc::Accumulator<Element>>(beta);
    }
    specc::store(alpha_row + i_first, alpha_v);
    specc::store(beta_row + i_first, beta_v);
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_gates_delta_launch(const void* a, const void* b, const void* A_log, const void* dt_bias,
    void* alpha, void* beta, int64_t a_stride_t, int64_t b_stride_t, int64_t alpha_stride_t,
    int64_t beta_stride_t, cudaStream_t stream, int64_t rows) {
    constexpr int PIECES = specc::ceil_div(48, VEC), X = specc::row_threads(PIECES, 256);
    constexpr int Y = 256 / X;
    const specc::Grid grid{specc::ceil_div(rows, Y), specc::ceil_div(PIECES, X)};
    const dim3 block(X, Y);
    return specc::launch(qwen3_8_27b::gdn_gates_delta_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const Element*>(a), static_cast<const Element*>(b), static_cast<const Element*>(A_log),
        static_cast<const Element*>(dt_bias), static_cast<specc::Accumulator<Element>*>(alpha),
        static_cast<specc::Accumulator<Element>*>(beta), int(rows), a_stride_t, b_stride_t, alpha_stride_t,
        beta_stride_t);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_gates_delta(int type, const void* a, const void* b, const void* A_log,
    const void* dt_bias, void* alpha, void* beta, int64_t T, int64_t a_stride_t, int64_t b_stride_t,
    int64_t alpha_stride_t, int64_t beta_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(A_log) && specc::aligned(a) && specc::aligned(dt_bias) && specc::aligned(b) &&
            specc::aligned(alpha) && specc::aligned(beta) && specc::aligned(a_stride_t, sizeof(Element)) &&
            specc::aligned(b_stride_t, sizeof(Element)) && specc::aligned(alpha_stride_t,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(beta_stride_t,
            sizeof(specc::Accumulator<Element>))) return gdn_gates_delta_launch<Element,
            specc::FULL<Element>>(a, b, A_log, dt_bias, alpha, beta, a_stride_t, b_stride_t, alpha_stride_t,
            beta_stride_t, stream, rows);
        return gdn_gates_delta_launch<Element, 1>(a, b, A_log, dt_bias, alpha, beta, a_stride_t,
            b_stride_t, alpha_stride_t, beta_stride_t, stream, rows);
    });
}

#endif
