// `decodeGQA` as node attn_core_decode.
//
//     o[b, h, d] = Σ_l softmax_l(0.0078125 · Σ_e q[b, h, e] · k[b, l, h // 4, e] | l < seq_lens[b]) · v[b, l, h
//         // 4, d]
//
// Spec Key  ibm-granite/granite-3.3-8b-instruct@1.0:layers[*].attn.core
// Phase     decode
// Schedule  attention_decode: softmax over `l` times values; each row has its own keys (decode); 4 query heads a
//           KV head
// Tensor    q [B, 32, 128], activation
// Tensor    k [B, S, 8, 128], cache, 64-bit offsets
// Tensor    v [B, S, 8, 128], cache, 64-bit offsets
// Tensor    seq_lens [B], int32 or int64
// Tensor    o [B, 32, 128], activation, result

#include "specc_tile.cuh"

namespace granite_3_3_8b_instruct {

/// A block: the query heads of one KV head, or Shape::ROWS of them, against one part of the keys. Leaves the weighted sum of
/// its values, its largest score, and the sum of its weights.
template <typename Element, int VEC, typename Shape>
__global__ void __launch_bounds__(Shape::THREADS, 1) attn_core_decode_kernel(int index_bytes,
    const Element* __restrict__ q_ptr, const Element* __restrict__ k_ptr, const Element* __restrict__ v_ptr,
    const void* __restrict__ seq_lens_ptr, int S, int64_t q_stride_b, int64_t q_stride_h, int64_t k_stride_b,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b, int64_t v_stride_l,
    int64_t v_stride_kv_head, real* __restrict__ sums_ptr, real* __restrict__ tops_ptr,
    real* __restrict__ totals_ptr) {
    __shared__ real scratch[Shape::ROWS * Shape::WARPS_D];
    const specc::AttentionTiles<Element, Shape> tiles;
    const specc::WarpOfAttention<Shape> warp;
    constexpr int BLOCKS = int(specc::ceil_div(4, Shape::ROWS));  // of one KV head
    const int b = blockIdx.x, kv_head = blockIdx.y / BLOCKS, split = blockIdx.z, splits = gridDim.z;
    const int first_member = blockIdx.y % BLOCKS * Shape::ROWS, members = min(4 - first_member, Shape::ROWS);
    const int seq_lens = specc::position(specc::index_at(seq_lens_ptr, index_bytes, b));
    const int low = 0, high = min(int(seq_lens), S);
    const int each = specc::ceil_div(specc::ceil_div(max(high - low, 0), splits), Shape::KEYS) * Shape::KEYS;
    const int first = low + split * each, last = min(first + each, high);

#pragma unroll specc::AT_ONCE<VEC>
    for (int piece = threadIdx.x; piece < Shape::ROWS * (Shape::E / VEC); piece += Shape::THREADS) {
        const int own = piece / (Shape::E / VEC), across = piece % (Shape::E / VEC) * VEC, e_first = across;
        const int member = first_member + min(own, members - 1), h = kv_head * 4 + member;
        const int left = own < members ? 128 - across : 0;
        specc::bring<VEC>(tiles.q.at(own, across), q_ptr + b * q_stride_b + h * q_stride_h + e_first, left);
    }
    const auto bring_keys = [&](int start) {
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::KEYS * (Shape::E / VEC); piece += Shape::THREADS) {
            const int own = piece / (Shape::E / VEC), across = piece % (Shape::E / VEC) * VEC, e_first =
                across;
            const int l = min(start + own, last - 1);
            const int left = start + own < last && l < seq_lens ? 128 - across : 0;
            specc::bring<VEC>(tiles.k.at(own, across), k_ptr + b * k_stride_b + l * k_stride_l + kv_head *
                k_stride_kv_head + e_first, left);
        }
    };
    const auto bring_values = [&](int start) {
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::KEYS * (Shape::D / VEC); piece += Shape::THREADS) {
            const int own = piece / (Shape::D / VEC), across = piece % (Shape::D / VEC) * VEC, d_first =
                across;
            const int l = min(start + own, last - 1);
            const int left = start + own < last && l < seq_lens ? 128 - across : 0;
            specc::bring<VEC>(tiles.v.at(own, across), v_ptr + b * v_stride_b + l * v_stride_l + kv_head *
                v_stride_kv_head + d_first, left);
        }
    };

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
                const real dot = scores[0][n][part];
                const real score = 0.0078125f * dot;
                scores[0][n][part] = l < last && l < seq_lens ? specc::seen_score(score) :
                    specc::Max::neutral();
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
    real* const results = specc::dynamic_shared<real>();
    constexpr int STRIDE = specc::spread(Shape::D), PIECES = specc::ceil_div(128, specc::FULL<real>);
    specc::put_fragments(results, STRIDE, warp.row, warp.column, sums);
    __syncthreads();
    for (int piece = threadIdx.x; piece < members * PIECES; piece += Shape::THREADS) {
        const int own = piece / PIECES, across = piece % PIECES * specc::FULL<real>;
        const int member = first_member + own, h = kv_head * 4 + member;
        const auto result = specc::load<specc::FULL<real>>(results + own * STRIDE + across);
        specc::store_up_to(sums_ptr + ((int64_t(b) * 32 + h) * splits + split) * 128 + across, result,
            128 - across);
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const int own = warp.row + specc::fragment_row(half * 2), member = first_member + own, h =
            kv_head * 4 + member;
        if (own < members && warp.part == 0 && threadIdx.x % 4 == 0) {
            tops_ptr[(int64_t(b) * 32 + h) * splits + split] = top[half];
            totals_ptr[(int64_t(b) * 32 + h) * splits + split] = total[half];
        }
    }
}

/// A block: one query head, whose parts it merges. A part without keys has weight 0.
template <typename Element, int VEC>
__global__ void __launch_bounds__(128) attn_core_decode_merge_kernel(Element* __restrict__ o_ptr,
    int64_t o_stride_b, int64_t o_stride_h, real* __restrict__ sums_ptr, real* __restrict__ tops_ptr,
    real* __restrict__ totals_ptr, int splits) {
    const int b = blockIdx.x, h = blockIdx.y, split = 0;
    const auto o_row = o_ptr + b * o_stride_b + h * o_stride_h;
    const int64_t part = (int64_t(b) * 32 + h) * splits + split;
    real largest = specc::Max::neutral(), total = 0.0f;
    for (int n = 0; n < splits; ++n) largest = specc::larger(largest, tops_ptr[part + n]);
    const real base = largest == specc::Max::neutral() ? real(0) : largest;
    for (int n = 0; n < splits; ++n) total += exp(tops_ptr[part + n] - base) * totals_ptr[part + n];
    for (int d_first = threadIdx.x * VEC; d_first < 128; d_first += blockDim.x * VEC) {
        real sums[VEC] = {};
        for (int own = 0; own < splits; ++own) {
            const real weight = exp(tops_ptr[part + own] - base);
            const real* from = sums_ptr + (part + own) * 128 + d_first;
            const auto values = specc::load_up_to<VEC>(from, 128 - d_first);
#pragma unroll
            for (int n = 0; n < VEC; ++n) sums[n] += weight * values.at[n];
        }
        specc::Vec<Element, VEC> o_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real acc = sums[n] / specc::divisor(largest, total);
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
cudaError_t attn_core_decode_launch(int index_bytes, const void* q, const void* k, const void* v,
    const void* seq_lens, void* o, void* workspace, int64_t S, int64_t q_stride_b, int64_t q_stride_h,
    int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b, int64_t v_stride_l,
    int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h, cudaStream_t stream, int64_t rows) {
    namespace kernels = granite_3_3_8b_instruct;
    if (!workspace || !specc::aligned(workspace)) return cudaErrorInvalidValue;
    const int64_t splits = specc::at_most((sizeof(Element) == 2 ? (rows <= 4 ? 32 : rows <= 32 ? 8 : 4) :
        (rows <= 4 ? 32 : 4)), S / 64 + 1);
    const int64_t parts = rows * 32 * splits;
    real* const sums = static_cast<real*>(workspace);
    real *const tops = sums + parts * 128, *const totals = tops + parts;
    const auto run = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream, index_bytes,
            static_cast<const Element*>(q), static_cast<const Element*>(k), static_cast<const Element*>(v),
            seq_lens, int(S), q_stride_b, q_stride_h, k_stride_b, k_stride_l, k_stride_kv_head, v_stride_b,
            v_stride_l, v_stride_kv_head, sums, tops, totals);
    };
    const auto run_merge = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream, static_cast<Element*>(o),
            o_stride_b, o_stride_h, sums, tops, totals, int(splits));
    };
    cudaError_t status = cudaSuccess;
    if constexpr (sizeof(Element) == 2) {
        using Shape = specc::AttentionShape<16, 64, 4, 128, 128>;
        status = run(kernels::attn_core_decode_kernel<Element, VEC, Shape>, specc::Grid{rows, 8 *
            specc::ceil_div(4, Shape::ROWS), splits}, Shape::THREADS,
            Shape::template shared_bytes<Element>());
    } else {
        using Shape = specc::AttentionShape<16, 32, 4, 128, 128>;
        status = run(kernels::attn_core_decode_kernel<Element, VEC, Shape>, specc::Grid{rows, 8 *
            specc::ceil_div(4, Shape::ROWS), splits}, Shape::THREADS,
            Shape::template shared_bytes<Element>());
    }
    if (status != cudaSuccess) return status;
    return run_merge(kernels::attn_core_decode_merge_kernel<Element, VEC>, specc::Grid{rows, 32}, 128, 0);
}

}  // namespace

/// Elements of float32 that the workspace of the launch must have.
extern "C" int64_t granite_3_3_8b_instruct_attn_core_decode_workspace(int64_t B, int64_t S) {
    const int64_t rows = B;
    const int64_t splits = specc::at_most(specc::at_least((rows <= 4 ? 32 : rows <= 32 ? 8 : 4), (rows <=
        4 ? 32 : 4)), S / 64 + 1);
    return rows * 32 * splits * 130;
}

extern "C" int granite_3_3_8b_instruct_attn_core_decode(int type, int index_bytes, const void* q,
    const void* k, const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S,
    int64_t q_stride_b, int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head,
    int64_t v_stride_b, int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream) {
    if (!specc::sizes_fit({B, S})) return cudaErrorInvalidValue;
    if (index_bytes != 4 && index_bytes != 8) return cudaErrorInvalidValue;
    if (B > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = B;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(q) && specc::aligned(k) && specc::aligned(v) && specc::aligned(o) &&
            specc::aligned(q_stride_b, sizeof(Element)) && specc::aligned(q_stride_h, sizeof(Element)) &&
            specc::aligned(k_stride_b, sizeof(Element)) && specc::aligned(k_stride_l, sizeof(Element)) &&
            specc::aligned(k_stride_kv_head, sizeof(Element)) && specc::aligned(v_stride_b,
            sizeof(Element)) && specc::aligned(v_stride_l, sizeof(Element)) &&
            specc::aligned(v_stride_kv_head, sizeof(Element)) && specc::aligned(o_stride_b,
            sizeof(Element)) && specc::aligned(o_stride_h,
            sizeof(Element))) return attn_core_decode_launch<Element, specc::FULL<Element>>(index_bytes, q, k,
            v, seq_lens, o, workspace, S, q_stride_b, q_stride_h, k_stride_b, k_stride_l, k_stride_kv_head,
            v_stride_b, v_stride_l, v_stride_kv_head, o_stride_b, o_stride_h, stream, rows);
        return attn_core_decode_launch<Element, 1>(index_bytes, q, k, v, seq_lens, o, workspace, S,
            q_stride_b, q_stride_h, k_stride_b, k_stride_l, k_stride_kv_head, v_stride_b, v_stride_l,
            v_stride_kv_head, o_stride_b, o_stride_h, stream, rows);
    });
}

#endif
