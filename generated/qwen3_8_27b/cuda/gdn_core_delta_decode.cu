// `gdnStep` as node gdn_core_delta_decode.
//
//     S[s, h, a, b] = alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) · k[s,
//         h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]
//     o[s, h, a] = Σ_b (alpha[s, h] · (S0[s, h, a, b] - (beta[s, h] · Σ_e S0[s, h, a, e] · k[s, h // 3, e]) ·
//         k[s, h // 3, b]) + beta[s, h] · v[s, h, a] · k[s, h // 3, b]) · q[s, h // 3, b]
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core
// Schedule  row_reduction: every reduction runs over the whole row: Σ over `b`, then Σ over `b`
// Tensor    S0 [B, 48, 128, 128], accumulator
// Tensor    q [B, 16, 128], activation
// Tensor    k [B, 16, 128], activation
// Tensor    v [B, 48, 128], activation
// Tensor    alpha [B, 48], accumulator
// Tensor    beta [B, 48], accumulator
// Tensor    S [B, 48, 128, 128], accumulator, result
// Tensor    o [B, 48, 128], activation, result

#include "specc_device.cuh"

namespace qwen3_8_27b {

/// A block: 8 rows, 16 threads each, in vectors of VEC elements.
template <typename Element, int VEC>
__global__ void __launch_bounds__(128,
    1) gdn_core_delta_decode_kernel(const specc::Accumulator<Element>* __restrict__ S0_ptr,
    const Element* __restrict__ q_ptr, const Element* __restrict__ k_ptr, const Element* __restrict__ v_ptr,
    const specc::Accumulator<Element>* __restrict__ alpha_ptr,
    const specc::Accumulator<Element>* __restrict__ beta_ptr, specc::Accumulator<Element>* __restrict__ S_ptr,
    Element* __restrict__ o_ptr, int rows, int64_t S0_stride_s, int64_t S0_stride_h, int64_t S0_stride_a,
    int64_t q_stride_s, int64_t q_stride_d1, int64_t k_stride_s, int64_t k_stride_d1, int64_t v_stride_s,
    int64_t v_stride_h, int64_t alpha_stride_s, int64_t beta_stride_s, int64_t S_stride_s, int64_t S_stride_h,
    int64_t S_stride_a, int64_t o_stride_s, int64_t o_stride_h) {
    constexpr int LANES = 16, PIECES = specc::ceil_div(128, LANES * VEC);
    const int own_row = blockIdx.x * 8 + threadIdx.y;
    const bool row_in = own_row < rows;
    const int row = row_in ? own_row : rows - 1;
    const int lane = threadIdx.x;
    const int a = row % 128;
    const int h = row / 128 % 48;
    const int s = (row / 128) / 48;
    const auto beta_row = beta_ptr + s * beta_stride_s;
    const real beta = specc::to_real(beta_row[h]);
    const auto alpha_row = alpha_ptr + s * alpha_stride_s;
    const real alpha = specc::to_real(alpha_row[h]);
    const auto v_row = v_ptr + s * v_stride_s + h * v_stride_h;
    const real v = specc::to_real(v_row[a]);
    const auto S0_row = S0_ptr + s * S0_stride_s + h * S0_stride_h + a * S0_stride_a;
    const auto k_row = k_ptr + s * k_stride_s + h / 3 * k_stride_d1;
    const auto q_row = q_ptr + s * q_stride_s + h / 3 * q_stride_d1;
    const auto S_row = S_ptr + s * S_stride_s + h * S_stride_h + a * S_stride_a;
    const auto o_row = o_ptr + s * o_stride_s + h * o_stride_h;
    specc::Vec<specc::Accumulator<Element>, VEC> S0_all[PIECES];
    specc::Vec<Element, VEC> k_all[PIECES];
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int b_first = (piece * LANES + lane) * VEC;
        S0_all[piece] = row_in ? specc::load<VEC>(S0_row + b_first) :
            specc::Vec<specc::Accumulator<Element>, VEC>{};
        k_all[piece] = row_in ? specc::load<VEC>(k_row + b_first) : specc::Vec<Element, VEC>{};
    }

    real r1_part = specc::Sum::neutral();
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real S0 = specc::to_real(S0_all[piece].at[n]);
            const real k = specc::to_real(k_all[piece].at[n]);
            const real r1_term = S0 * k;
            r1_part = specc::Sum::join(r1_part, r1_term);
        }
    }
    const real r1_raw = specc::reduce_lanes<specc::Sum, 16>(r1_part);
    const real r1 = beta * r1_raw;

    real r2_part = specc::Sum::neutral();
#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int b_first = (piece * LANES + lane) * VEC;
        const auto q_v = row_in ? specc::load<VEC>(q_row + b_first) : specc::Vec<Element, VEC>{};
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real S0 = specc::to_real(S0_all[piece].at[n]);
            const real k = specc::to_real(k_all[piece].at[n]);
            const real q = specc::to_real(q_v.at[n]);
            const real r2_term = (alpha * (S0 - r1 * k) + beta * v * k) * q;
            r2_part = specc::Sum::join(r2_part, r2_term);
        }
    }
    const real r2_raw = specc::reduce_lanes<specc::Sum, 16>(r2_part);
    const real r2 = r2_raw;

#pragma unroll
    for (int piece = 0; piece < PIECES; ++piece) {
        const int b_first = (piece * LANES + lane) * VEC;
        if (!(row_in)) continue;
        specc::Vec<specc::Accumulator<Element>, VEC> S_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real S0 = specc::to_real(S0_all[piece].at[n]);
            const real k = specc::to_real(k_all[piece].at[n]);
            const real S = alpha * (S0 - r1 * k) + beta * v * k;
            S_v.at[n] = specc::round_to<specc::Accumulator<Element>>(S);
        }
        specc::store(S_row + b_first, S_v);
    }

    if (row_in && lane == 0) {
        const real o = r2;
        o_row[a] = specc::round_to<Element>(o);
    }
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_core_delta_decode_launch(const void* S0, const void* q, const void* k, const void* v,
    const void* alpha, const void* beta, void* S, void* o, int64_t S0_stride_s, int64_t S0_stride_h,
    int64_t S0_stride_a, int64_t q_stride_s, int64_t q_stride_d1, int64_t k_stride_s, int64_t k_stride_d1,
    int64_t v_stride_s, int64_t v_stride_h, int64_t alpha_stride_s, int64_t beta_stride_s, int64_t S_stride_s,
    int64_t S_stride_h, int64_t S_stride_a, int64_t o_stride_s, int64_t o_stride_h, cudaStream_t stream,
    int64_t rows) {
    const specc::Grid grid{specc::ceil_div(rows, 8)};
    const dim3 block(16, 8);
    return specc::launch(qwen3_8_27b::gdn_core_delta_decode_kernel<Element, VEC>, grid, block, 0, stream,
        static_cast<const specc::Accumulator<Element>*>(S0), static_cast<const Element*>(q),
        static_cast<const Element*>(k), static_cast<const Element*>(v),
        static_cast<const specc::Accumulator<Element>*>(alpha),
        static_cast<const specc::Accumulator<Element>*>(beta), static_cast<specc::Accumulator<Element>*>(S),
        static_cast<Element*>(o), int(rows), S0_stride_s, S0_stride_h, S0_stride_a, q_stride_s, q_stride_d1,
        k_stride_s, k_stride_d1, v_stride_s, v_stride_h, alpha_stride_s, beta_stride_s, S_stride_s,
        S_stride_h, S_stride_a, o_stride_s, o_stride_h);
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_core_delta_decode(int type, const void* S0, const void* q, const void* k,
    const void* v, const void* alpha, const void* beta, void* S, void* o, int64_t B, int64_t S0_stride_s,
    int64_t S0_stride_h, int64_t S0_stride_a, int64_t q_stride_s, int64_t q_stride_d1, int64_t k_stride_s,
    int64_t k_stride_d1, int64_t v_stride_s, int64_t v_stride_h, int64_t alpha_stride_s,
    int64_t beta_stride_s, int64_t S_stride_s, int64_t S_stride_h, int64_t S_stride_a, int64_t o_stride_s,
    int64_t o_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({B})) return cudaErrorInvalidValue;
    if (1.0 * B * 48 * 128 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = B * 48 * 128;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(S0) && specc::aligned(k) && specc::aligned(q) && specc::aligned(S) &&
            specc::aligned(S0_stride_s, sizeof(specc::Accumulator<Element>)) && specc::aligned(S0_stride_h,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(S0_stride_a,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(q_stride_s, sizeof(Element)) &&
            specc::aligned(q_stride_d1, sizeof(Element)) && specc::aligned(k_stride_s, sizeof(Element)) &&
            specc::aligned(k_stride_d1, sizeof(Element)) && specc::aligned(S_stride_s,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(S_stride_h,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(S_stride_a,
            sizeof(specc::Accumulator<Element>))) return gdn_core_delta_decode_launch<Element,
            specc::FULL<Element>>(S0, q, k, v, alpha, beta, S, o, S0_stride_s, S0_stride_h, S0_stride_a,
            q_stride_s, q_stride_d1, k_stride_s, k_stride_d1, v_stride_s, v_stride_h, alpha_stride_s,
            beta_stride_s, S_stride_s, S_stride_h, S_stride_a, o_stride_s, o_stride_h, stream, rows);
        return gdn_core_delta_decode_launch<Element, 1>(S0, q, k, v, alpha, beta, S, o, S0_stride_s,
            S0_stride_h, S0_stride_a, q_stride_s, q_stride_d1, k_stride_s, k_stride_d1, v_stride_s,
            v_stride_h, alpha_stride_s, beta_stride_s, S_stride_s, S_stride_h, S_stride_a, o_stride_s,
            o_stride_h, stream, rows);
    });
}

#endif
