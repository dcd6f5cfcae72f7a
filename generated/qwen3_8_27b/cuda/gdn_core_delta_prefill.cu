// `gatedDeltaRule` as node gdn_core_delta_prefill.
//
//     R[t < T, h < 48, a < 128, b < 128] from S0[h, a, b] = alpha[t, h] · (R[t - 1, h, a, b] - (beta[t, h] · Σ_c
//         R[t - 1, h, a, c] · k[t, h // 3, c]) · k[t, h // 3, b]) + beta[t, h] · v[t, h, a] · k[t, h // 3, b]
//     S[h, a, b] = R[T - 1, h, a, b]
//     o[t, h, a] = Σ_b R[t, h, a, b] · q[t, h // 3, b]
//
// Spec Key  Qwen/Qwen3.8-27B@1.0:layers[*].gdn.core
// Schedule  recurrence: a state that is linear in the one before, with a transition of rank one: sums over `b`,
//           chunks of steps
// Tensor    S0 [48, 128, 128], accumulator
// Tensor    q [T, 16, 128], activation
// Tensor    k [T, 16, 128], activation
// Tensor    v [T, 48, 128], activation, 64-bit offsets
// Tensor    alpha [T, 48], accumulator
// Tensor    beta [T, 48], accumulator
// Tensor    S [48, 128, 128], accumulator, result
// Tensor    o [T, 48, 128], activation, result

#include "specc_tile.cuh"

namespace qwen3_8_27b {

/// A block: some values of one head's state, through all steps, Shape::CHUNK of them at a time. Decays are multiplied up step
/// by step and never divided, so one that is 0 forgets and nothing else.
template <typename Element, int VEC, typename Shape>
__global__ void __launch_bounds__(Shape::THREADS,
    1) gdn_core_delta_prefill_kernel(const specc::Accumulator<Element>* __restrict__ S0_ptr,
    const Element* __restrict__ q_ptr, const Element* __restrict__ k_ptr, const Element* __restrict__ v_ptr,
    const specc::Accumulator<Element>* __restrict__ alpha_ptr,
    const specc::Accumulator<Element>* __restrict__ beta_ptr, specc::Accumulator<Element>* __restrict__ S_ptr,
    Element* __restrict__ o_ptr, int T, int64_t S0_stride_h, int64_t S0_stride_a, int64_t q_stride_t,
    int64_t q_stride_d1, int64_t k_stride_t, int64_t k_stride_d1, int64_t v_stride_t, int64_t v_stride_h,
    int64_t alpha_stride_t, int64_t beta_stride_t, int64_t S_stride_h, int64_t S_stride_a, int64_t o_stride_t,
    int64_t o_stride_h) {
    constexpr int CHUNK = Shape::CHUNK, VALUES = Shape::VALUES, KEYS = Shape::KEYS, WARPS = Shape::WARPS;
    real* const memory = specc::dynamic_shared<real>();
    const typename Shape::State state{memory};
    const typename Shape::Vectors k_tile{memory + Shape::VECTORS + 0 * Shape::Vectors::SIZE};
    const typename Shape::Vectors q_tile{memory + Shape::VECTORS + 1 * Shape::Vectors::SIZE};
    const typename Shape::Square fade{memory + Shape::SQUARES + 0 * Shape::Square::SIZE};
    const typename Shape::Square pull{memory + Shape::SQUARES + 1 * Shape::Square::SIZE};
    const typename Shape::Square meets{memory + Shape::SQUARES + 2 * Shape::Square::SIZE};
    const typename Shape::Strip added{memory + Shape::STRIPS + 0 * Shape::Strip::SIZE};
    const typename Shape::Strip finds{memory + Shape::STRIPS + 1 * Shape::Strip::SIZE};
    const typename Shape::Strip results{memory + Shape::STRIPS + 2 * Shape::Strip::SIZE};
    real *const decay = memory + Shape::NUMBERS, *const since = decay + CHUNK;
    real* const rate = since + CHUNK;
    const int row = blockIdx.x, first_value = blockIdx.y * VALUES;
    const int h = row;

    for (int piece = threadIdx.x; piece < VALUES * (KEYS / VEC); piece += Shape::THREADS) {
        const int own = piece / (KEYS / VEC), b_first = piece % (KEYS / VEC) * VEC;
        const int a = min(first_value + own, 128 - 1);
        const auto S0_row = S0_ptr + h * S0_stride_h + a * S0_stride_a;
        const auto S0_v = specc::load<VEC>(S0_row + b_first);
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real S0 = specc::to_real(S0_v.at[n]);
            const real before = S0;
            *state.at(own, b_first + n) = b_first + n < 128 ? before : real(0);
        }
    }
    for (int start = 0; start < T; start += CHUNK) {
        __syncthreads();
        for (int piece = threadIdx.x; piece < CHUNK * (KEYS / VEC); piece += Shape::THREADS) {
            const int own = piece / (KEYS / VEC), b_first = piece % (KEYS / VEC) * VEC;
            const int left = start + own < T ? 128 - b_first : 0;
            const int t = min(start + own, T - 1);
            const auto k_row = k_ptr + t * k_stride_t + h / 3 * k_stride_d1;
            const auto q_row = q_ptr + t * q_stride_t + h / 3 * q_stride_d1;
            const auto k_v = specc::load<VEC>(k_row + b_first);
            const auto q_v = specc::load<VEC>(q_row + b_first);
#pragma unroll
            for (int n = 0; n < VEC; ++n) {
                const real k = specc::to_real(k_v.at[n]);
                const real q = specc::to_real(q_v.at[n]);
                const real vector_2 = k;
                const real vector_3 = q;
                *k_tile.at(own, b_first + n) = n < left ? vector_2 : real(0);
                *q_tile.at(own, b_first + n) = n < left ? vector_3 : real(0);
            }
        }
        for (int own = threadIdx.x; own < CHUNK; own += Shape::THREADS) {
            const bool inside = start + own < T;
            const int t = min(start + own, T - 1);
            const auto alpha_row = alpha_ptr + t * alpha_stride_t;
            const real alpha = specc::to_real(alpha_row[h]);
            const auto beta_row = beta_ptr + t * beta_stride_t;
            const real beta = specc::to_real(beta_row[h]);
            const real own_decay = alpha;
            const real own_rate = beta;
            decay[own] = inside ? own_decay : real(1);
            rate[own] = inside ? own_rate : real(0);
        }
        for (int piece = threadIdx.x; piece < CHUNK * (VALUES / VEC); piece += Shape::THREADS) {
            const int own = piece / (VALUES / VEC), across = piece % (VALUES / VEC) * VEC;
            const int a_first = first_value + across;
            const int left = start + own < T ? 128 - a_first : 0;
            const int t = min(start + own, T - 1);
            const auto beta_row_2 = beta_ptr + t * beta_stride_t;
            const real beta = specc::to_real(beta_row_2[h]);
            const auto v_row = v_ptr + t * v_stride_t + h * v_stride_h;
            const auto v_v = a_first < 128 ? specc::load<VEC>(v_row + a_first) : specc::Vec<Element, VEC>{};
#pragma unroll
            for (int n = 0; n < VEC; ++n) {
                const real v = specc::to_real(v_v.at[n]);
                const real gain = beta * v;
                *added.at(across + n, own) = n < left ? gain : real(0);
            }
        }
        __syncthreads();
        specc::multiply_decays<Shape::THREADS>(decay, since, fade);
        __syncthreads();

        // What each step finds in the state before it, decayed: a triangular system.
        specc::product_of_rows<WARPS>(state, k_tile, [&](int own, int step, real sum) {
            *finds.at(own, step) = since[step] * sum;
        });
        specc::product_of_rows<WARPS>(k_tile, k_tile, [&](int from, int step, real sum) {
            *pull.at(from, step) = from < step ? *fade.at(from, step) * sum : real(0);
        });
        __syncthreads();
        specc::sum_of_steps<Shape::THREADS>(added, pull, [&](int own, int step, real sum) {
            *finds.at(own, step) += sum;
        });
        __syncthreads();
        for (int place = threadIdx.x; place < CHUNK * CHUNK; place += Shape::THREADS)
            *pull.at(place / CHUNK, place % CHUNK) *= rate[place / CHUNK];
        __syncthreads();
        specc::solve_steps<Shape::THREADS>(finds, pull);
        __syncthreads();
        for (int place = threadIdx.x; place < VALUES * CHUNK; place += Shape::THREADS) {
            const int own = place / CHUNK, step = place % CHUNK;
            *added.at(own, step) -= rate[step] * *finds.at(own, step);
        }
        __syncthreads();

        specc::product_of_rows<WARPS>(state, q_tile, [&](int own, int step, real sum) {
            *results.at(own, step) = since[step] * sum;
        });
        specc::product_of_rows<WARPS>(k_tile, q_tile, [&](int from, int step, real sum) {
            *meets.at(from, step) = *fade.at(from, step) * sum;
        });
        __syncthreads();
        specc::sum_of_steps<Shape::THREADS>(added, meets, [&](int own, int step, real sum) {
            *results.at(own, step) += sum;
        });
        __syncthreads();
        for (int piece = threadIdx.x; piece < CHUNK * (VALUES / VEC); piece += Shape::THREADS) {
            const int own = piece / (VALUES / VEC), across = piece % (VALUES / VEC) * VEC;
            const int a_first = first_value + across, t = start + own;
            if (t >= T || a_first >= 128) continue;
            const auto o_row = o_ptr + t * o_stride_t + h * o_stride_h;
            specc::Vec<Element, VEC> o_v;
#pragma unroll
            for (int n = 0; n < VEC; ++n) {
                const real acc = *results.at(across + n, own);
                const real o = acc;
                o_v.at[n] = specc::round_to<Element>(o);
            }
            specc::store(o_row + a_first, o_v);
        }

        __syncthreads();
        for (int place = threadIdx.x; place < VALUES * CHUNK; place += Shape::THREADS) {
            const int own = place / CHUNK, step = place % CHUNK;
            *added.at(own, step) *= *fade.at(step, CHUNK - 1);
        }
        __syncthreads();
        specc::product_of_columns<WARPS>(added, k_tile, [&](int own, int column, real sum) {
            *state.at(own, column) = *state.at(own, column) * since[CHUNK - 1] + sum;
        });
    }
    __syncthreads();
    for (int piece = threadIdx.x; piece < VALUES * (KEYS / VEC); piece += Shape::THREADS) {
        const int own = piece / (KEYS / VEC), b_first = piece % (KEYS / VEC) * VEC, a = first_value + own;
        if (a >= 128 || b_first >= 128) continue;
        const auto S_row = S_ptr + h * S_stride_h + a * S_stride_a;
        specc::Vec<specc::Accumulator<Element>, VEC> S_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real R = *state.at(own, b_first + n);
            const real S = R;
            S_v.at[n] = specc::round_to<specc::Accumulator<Element>>(S);
        }
        specc::store(S_row + b_first, S_v);
    }
}

}  // namespace qwen3_8_27b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t gdn_core_delta_prefill_launch(const void* S0, const void* q, const void* k, const void* v,
    const void* alpha, const void* beta, void* S, void* o, int64_t T, int64_t S0_stride_h,
    int64_t S0_stride_a, int64_t q_stride_t, int64_t q_stride_d1, int64_t k_stride_t, int64_t k_stride_d1,
    int64_t v_stride_t, int64_t v_stride_h, int64_t alpha_stride_t, int64_t beta_stride_t, int64_t S_stride_h,
    int64_t S_stride_a, int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream, int64_t rows) {
    namespace kernels = qwen3_8_27b;
    const auto run = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream,
            static_cast<const specc::Accumulator<Element>*>(S0), static_cast<const Element*>(q),
            static_cast<const Element*>(k), static_cast<const Element*>(v),
            static_cast<const specc::Accumulator<Element>*>(alpha),
            static_cast<const specc::Accumulator<Element>*>(beta),
            static_cast<specc::Accumulator<Element>*>(S), static_cast<Element*>(o), int(T), S0_stride_h,
            S0_stride_a, q_stride_t, q_stride_d1, k_stride_t, k_stride_d1, v_stride_t, v_stride_h,
            alpha_stride_t, beta_stride_t, S_stride_h, S_stride_a, o_stride_t, o_stride_h);
    };
    using Shape = specc::RecurrenceShape<32, 32, 128, 4, 2, 3, 3>;
    return run(kernels::gdn_core_delta_prefill_kernel<Element, VEC, Shape>, specc::Grid{rows,
        specc::ceil_div(128, Shape::VALUES)}, Shape::THREADS, Shape::shared_bytes());
}

}  // namespace

extern "C" int qwen3_8_27b_gdn_core_delta_prefill(int type, const void* S0, const void* q, const void* k,
    const void* v, const void* alpha, const void* beta, void* S, void* o, int64_t T, int64_t S0_stride_h,
    int64_t S0_stride_a, int64_t q_stride_t, int64_t q_stride_d1, int64_t k_stride_t, int64_t k_stride_d1,
    int64_t v_stride_t, int64_t v_stride_h, int64_t alpha_stride_t, int64_t beta_stride_t, int64_t S_stride_h,
    int64_t S_stride_a, int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (48 > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = 48;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(o) && specc::aligned(S0) && specc::aligned(k) && specc::aligned(q) &&
            specc::aligned(v) && specc::aligned(S) && specc::aligned(S0_stride_h,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(S0_stride_a,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(q_stride_t, sizeof(Element)) &&
            specc::aligned(q_stride_d1, sizeof(Element)) && specc::aligned(k_stride_t, sizeof(Element)) &&
            specc::aligned(k_stride_d1, sizeof(Element)) && specc::aligned(v_stride_t, sizeof(Element)) &&
            specc::aligned(v_stride_h, sizeof(Element)) && specc::aligned(S_stride_h,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(S_stride_a,
            sizeof(specc::Accumulator<Element>)) && specc::aligned(o_stride_t, sizeof(Element)) &&
            specc::aligned(o_stride_h, sizeof(Element))) return gdn_core_delta_prefill_launch<Element,
            specc::FULL<Element>>(S0, q, k, v, alpha, beta, S, o, T, S0_stride_h, S0_stride_a, q_stride_t,
            q_stride_d1, k_stride_t, k_stride_d1, v_stride_t, v_stride_h, alpha_stride_t, beta_stride_t,
            S_stride_h, S_stride_a, o_stride_t, o_stride_h, stream, rows);
        return gdn_core_delta_prefill_launch<Element, 1>(S0, q, k, v, alpha, beta, S, o, T, S0_stride_h,
            S0_stride_a, q_stride_t, q_stride_d1, k_stride_t, k_stride_d1, v_stride_t, v_stride_h,
            alpha_stride_t, beta_stride_t, S_stride_h, S_stride_a, o_stride_t, o_stride_h, stream, rows);
    });
}

#endif
