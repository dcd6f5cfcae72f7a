// `causalGQA` as node attn_core_prefill.
//
//     o[t, h, d] = Σ_l softmax_l(0.0078125 · Σ_e q[t, h, e] · k[l, h // 4, e] | l ≤ pos[t]) · v[l, h // 4, d]
//
// Spec Key  ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].attn.core
// Phase     prefill
// Schedule  attention_prefill: softmax over `l` times values; rows share the keys (prefill); 4 query heads a KV
//           head
// Tensor    q [T, 32, 128], activation
// Tensor    k [L, 8, 128], cache
// Tensor    v [L, 8, 128], cache
// Tensor    pos [T], int32 or int64
// Tensor    o [T, 32, 128], activation, result

#include "specc_tile.cuh"

namespace granite_3_3_8b_instruct {

/// The rows of a block one after the other, key by key: what a row does not see takes no part, be it NaN or infinite.
template <typename Element, typename Shape>
__device__ __noinline__ void attn_core_prefill_by_key(real* results, int index_bytes,
    const Element* __restrict__ q_ptr, const Element* __restrict__ k_ptr, const Element* __restrict__ v_ptr,
    const void* __restrict__ pos_ptr, int T, int L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head) {
    specc::start_slow_way();
    constexpr int STRIDE = specc::spread(Shape::D), COLUMNS = specc::ceil_div(128, specc::WARP);
    const int lane = threadIdx.x % specc::WARP;
    for (int own = threadIdx.x / specc::WARP; own < Shape::ROWS; own += Shape::WARPS) {
        const int t = min(int(blockIdx.x) * Shape::ROWS + own, T - 1);
        const int kv_head = int(blockIdx.y) / 4;
        const int h = kv_head * 4 + int(blockIdx.y) % 4;
        const int pos = specc::position(specc::index_at(pos_ptr, index_bytes, t));
        real top = specc::Max::neutral(), total = 0.0f, sums[COLUMNS] = {};
        for (int l = 0; l < min(int(pos + 1), L); ++l) {
            if (!(l <= pos)) continue;
            real dot = 0.0f;
            for (int e = lane; e < 128; e += specc::WARP) {
                const auto q_row = q_ptr + t * q_stride_t + h * q_stride_h;
                const real q = specc::to_real(q_row[e]);
                const auto k_row = k_ptr + l * k_stride_l + kv_head * k_stride_kv_head;
                const real k = specc::to_real(k_row[e]);
                dot += q * k;
            }
            dot = specc::reduce_lanes<specc::Sum, specc::WARP>(dot);
            const real score = 0.0078125f * dot;
            const real own_score = specc::seen_score(score), largest = specc::larger(top, own_score);
            const real base = largest == specc::Max::neutral() ? real(0) : largest;
            const real weight = exp(own_score - base), fade = exp(top - base), share =
                specc::rounded<Element>(weight);
            total = total * fade + weight;
            top = largest;
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) {
                const int d = column * specc::WARP + lane;
                if (d >= 128) break;
                const auto v_row = v_ptr + l * v_stride_l + kv_head * v_stride_kv_head;
                const real v = specc::to_real(v_row[d]);
                sums[column] = sums[column] * fade + share * v;
            }
        }
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column)
            if (column * specc::WARP + lane < 128)
                results[own * STRIDE + column * specc::WARP + lane] = sums[column] / specc::divisor(top,
                    total);
    }
}

/// A block: Shape::ROWS rows of one query head, and Shape::KEYS keys at a time, from the first that a row sees to the last.
template <typename Element, int VEC, typename Shape>
__global__ void __launch_bounds__(Shape::THREADS, 1) attn_core_prefill_kernel(int index_bytes,
    const Element* __restrict__ q_ptr, const Element* __restrict__ k_ptr, const Element* __restrict__ v_ptr,
    const void* __restrict__ pos_ptr, Element* __restrict__ o_ptr, int T, int L, int64_t q_stride_t,
    int64_t q_stride_h, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l,
    int64_t v_stride_kv_head, int64_t o_stride_t, int64_t o_stride_h) {
    __shared__ real scratch[Shape::ROWS * Shape::WARPS_D];
    __shared__ specc::Range ends[Shape::WARPS];
    const specc::AttentionTiles<Element, Shape> tiles;
    const specc::WarpOfAttention<Shape> warp;
    const int first_row = blockIdx.x * Shape::ROWS;
    const int kv_head = int(blockIdx.y) / 4;
    const int h = kv_head * 4 + int(blockIdx.y) % 4;
    int least = L, most = 0;
    for (int own = threadIdx.x; own < Shape::ROWS; own += Shape::THREADS) {
        const int t = min(first_row + own, T - 1);
        const int pos = specc::position(specc::index_at(pos_ptr, index_bytes, t));
        least = min(least, 0);
        most = max(most, min(int(pos + 1), L));
    }
    const specc::Range seen_keys = specc::block_range<Shape::WARPS>(least, most, ends);
    const int first = seen_keys.first, last = seen_keys.last;

#pragma unroll specc::AT_ONCE<VEC>
    for (int piece = threadIdx.x; piece < Shape::ROWS * (Shape::E / VEC); piece += Shape::THREADS) {
        const int own = piece / (Shape::E / VEC), across = piece % (Shape::E / VEC) * VEC, e_first = across;
        const int t = min(first_row + own, T - 1), left = 128 - across;
        specc::bring<VEC>(tiles.q.at(own, across), q_ptr + t * q_stride_t + h * q_stride_h + e_first, left);
    }
    const auto bring_keys = [&](int start) {
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::KEYS * (Shape::E / VEC); piece += Shape::THREADS) {
            const int own = piece / (Shape::E / VEC), across = piece % (Shape::E / VEC) * VEC, e_first =
                across;
            const int l = min(start + own, last - 1);
            const int left = start + own < last ? 128 - across : 0;
            specc::bring<VEC>(tiles.k.at(own, across), k_ptr + l * k_stride_l + kv_head *
                k_stride_kv_head + e_first, left);
        }
    };
    const auto bring_values = [&](int start) {
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::KEYS * (Shape::D / VEC); piece += Shape::THREADS) {
            const int own = piece / (Shape::D / VEC), across = piece % (Shape::D / VEC) * VEC, d_first =
                across;
            const int l = min(start + own, last - 1);
            const int left = start + own < last ? 128 - across : 0;
            specc::bring<VEC>(tiles.v.at(own, across), v_ptr + l * v_stride_l + kv_head *
                v_stride_kv_head + d_first, left);
        }
    };
    int pos_all[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int t = min(first_row + warp.row + specc::fragment_row(half * 2), T - 1);
        const int pos = specc::position(specc::index_at(pos_ptr, index_bytes, t));
        pos_all[half] = pos;
    }

    real top[2] = {specc::Max::neutral(), specc::Max::neutral()}, total[2] = {};
    real sums[1][Shape::WARP_D / 8][4] = {};
    bring_keys(first);
    specc::commit_copies();
    for (int start = first; start < last; start += Shape::KEYS) {
        bring_values(start);
        specc::commit_copies();
        specc::wait_copies<1>();
        __syncthreads();
        real scores[1][Shape::WARP_KEYS / 8][4] = {};
        specc::multiply_rows<Shape::E>(scores, tiles.q, warp.row, tiles.k, warp.key);
        __syncthreads();
        if (start + Shape::KEYS < last) bring_keys(start + Shape::KEYS);
        specc::commit_copies();

        // Weights of these keys, while values and the next keys are under way.
        real largest[2] = {top[0], top[1]}, fade[2];
#pragma unroll
        for (int n = 0; n < Shape::WARP_KEYS / 8; ++n)
#pragma unroll
            for (int part = 0; part < 4; ++part) {
                const int l = start + warp.key + n * 8 + specc::fragment_column(part);
                const int pos = pos_all[part / 2];
                const real dot = scores[0][n][part];
                const real score = 0.0078125f * dot;
                scores[0][n][part] = l < last && l <= pos ? specc::seen_score(score) : specc::Max::neutral();
                largest[part / 2] = specc::larger(largest[part / 2], scores[0][n][part]);
            }
        specc::reduce_rows<specc::Max>(largest, scratch, warp);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const real base = largest[half] == specc::Max::neutral() ? real(0) : largest[half];
            fade[half] = exp(top[half] - base);
            top[half] = largest[half];
            real own = 0.0f;
#pragma unroll
            for (int n = 0; n < Shape::WARP_KEYS / 8; ++n) {
                const real even = exp(scores[0][n][half * 2] - base), odd = exp(scores[0][n][half * 2 +
                    1] - base);
                const int row = warp.row + specc::fragment_row(half * 2);
                const specc::Vec<Element, 2> both{specc::round_to<Element>(even),
                    specc::round_to<Element>(odd)};
                specc::store(tiles.weights.at(row, warp.key + n * 8 + specc::fragment_column(0)), both);
                own += even + odd;
            }
            total[half] = total[half] * fade[half] + own;
        }
#pragma unroll
        for (int n = 0; n < Shape::WARP_D / 8; ++n)
#pragma unroll
            for (int part = 0; part < 4; ++part) sums[0][n][part] *= fade[part / 2];
        specc::wait_copies<1>();
        __syncthreads();
        specc::multiply_columns<Shape::KEYS>(sums, tiles.weights, warp.row, tiles.v, warp.column);
        __syncthreads();
    }
    specc::wait_copies<0>();
    __syncthreads();
    specc::reduce_rows<specc::Sum>(total, scratch, warp);
    bool good = true;
#pragma unroll
    for (int n = 0; n < Shape::WARP_D / 8; ++n)
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            sums[0][n][part] /= specc::divisor(top[part / 2], total[part / 2]);
            good = good && specc::finite(sums[0][n][part]);
        }
    real* const results = specc::dynamic_shared<real>();
    constexpr int STRIDE = specc::spread(Shape::D);
    if (__syncthreads_or(!good)) {
        // A value that only some of the rows see is NaN or infinite, and so is 0 times that in the others.
        attn_core_prefill_by_key<Element, Shape>(results, index_bytes, q_ptr, k_ptr, v_ptr, pos_ptr, T, L,
            q_stride_t, q_stride_h, k_stride_l, k_stride_kv_head, v_stride_l, v_stride_kv_head);
    } else {
        specc::put_fragments(results, STRIDE, warp.row, warp.column, sums);
    }
    __syncthreads();

    constexpr int PIECES = specc::ceil_div(128, VEC);
    for (int piece = threadIdx.x; piece < Shape::ROWS * PIECES; piece += Shape::THREADS) {
        const int own = piece / PIECES, d_first = piece % PIECES * VEC, t = first_row + own;
        if (t >= T) break;
        const auto o_row = o_ptr + t * o_stride_t + h * o_stride_h;
        const auto acc_v = specc::load<VEC>(results + own * STRIDE + d_first);
        specc::Vec<Element, VEC> o_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real acc = acc_v.at[n];
            const real o = acc;
            o_v.at[n] = specc::round_to<Element>(o);
        }
        specc::store(o_row + d_first, o_v);
    }
}

}  // namespace granite_3_3_8b_instruct

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t attn_core_prefill_launch(int index_bytes, const void* q, const void* k, const void* v,
    const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream, int64_t rows) {
    namespace kernels = granite_3_3_8b_instruct;
    const auto run = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream, index_bytes,
            static_cast<const Element*>(q), static_cast<const Element*>(k), static_cast<const Element*>(v),
            pos, static_cast<Element*>(o), int(T), int(L), q_stride_t, q_stride_h, k_stride_l,
            k_stride_kv_head, v_stride_l, v_stride_kv_head, o_stride_t, o_stride_h);
    };
    if constexpr (sizeof(Element) == 2) {
        using Shape = specc::AttentionShape<128, 64, 1, 128, 128>;
        return run(kernels::attn_core_prefill_kernel<Element, VEC, Shape>,
            specc::Grid{specc::ceil_div(rows, Shape::ROWS), 32}, Shape::THREADS,
            Shape::template shared_bytes<Element>());
    } else {
        using Shape = specc::AttentionShape<32, 32, 2, 128, 128>;
        return run(kernels::attn_core_prefill_kernel<Element, VEC, Shape>,
            specc::Grid{specc::ceil_div(rows, Shape::ROWS), 32}, Shape::THREADS,
            Shape::template shared_bytes<Element>());
    }
}

}  // namespace

extern "C" int granite_3_3_8b_instruct_attn_core_prefill(int type, int index_bytes, const void* q,
    const void* k, const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t,
    int64_t q_stride_h, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l,
    int64_t v_stride_kv_head, int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream) {
    if (!specc::sizes_fit({T, L})) return cudaErrorInvalidValue;
    if (index_bytes != 4 && index_bytes != 8) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(q) && specc::aligned(k) && specc::aligned(v) && specc::aligned(o) &&
            specc::aligned(q_stride_t, sizeof(Element)) && specc::aligned(q_stride_h, sizeof(Element)) &&
            specc::aligned(k_stride_l, sizeof(Element)) && specc::aligned(k_stride_kv_head,
            sizeof(Element)) && specc::aligned(v_stride_l, sizeof(Element)) &&
            specc::aligned(v_stride_kv_head, sizeof(Element)) && specc::aligned(o_stride_t,
            sizeof(Element)) && specc::aligned(o_stride_h,
            sizeof(Element))) return attn_core_prefill_launch<Element, specc::FULL<Element>>(index_bytes, q,
            k, v, pos, o, T, L, q_stride_t, q_stride_h, k_stride_l, k_stride_kv_head, v_stride_l,
            v_stride_kv_head, o_stride_t, o_stride_h, stream, rows);
        return attn_core_prefill_launch<Element, 1>(index_bytes, q, k, v, pos, o, T, L, q_stride_t,
            q_stride_h, k_stride_l, k_stride_kv_head, v_stride_l, v_stride_kv_head, o_stride_t, o_stride_h,
            stream, rows);
    });
}

#endif
