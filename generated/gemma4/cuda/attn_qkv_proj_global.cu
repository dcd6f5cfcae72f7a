// `linear` as node attn_qkv_proj_global.
//
//     y[t, n] = Σ_k x[t, k] · w[n, k]
//
// Spec Key  google/gemma-4-31B@1.0:layers[*].attn.qkv_proj
// Schedule  contraction: one Σ over `k` of a product that parts into rows and columns `n`
// Tensor    x [T, 5376], activation
// Tensor    w [18432, 5376], weight
// Tensor    y [T, 18432], activation, result, 64-bit offsets

#include "specc_tile.cuh"

namespace gemma_4_31b {

/// For few rows, bound by memory. A warp: COLUMNS columns of all rows; its lanes share the sums.
template <typename Element, int VEC, int ROWS, int COLUMNS>
__global__ void __launch_bounds__(256) attn_qkv_proj_global_few_kernel(const Element* __restrict__ x_ptr,
    const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr, int rows, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t) {
    const int lane = threadIdx.x % specc::WARP, warp = threadIdx.x / specc::WARP;
    const int first_column = (blockIdx.x * (blockDim.x / specc::WARP) + warp) * COLUMNS;
    if (first_column >= 18432) return;
    real sums[2][ROWS][COLUMNS] = {};
    for (int start = lane * VEC; start < 5376; start += 2 * specc::WARP * VEC) {
#pragma unroll
        for (int strand = 0; strand < 2; ++strand) {
            const int k_first = start + strand * specc::WARP * VEC, left = 5376 - k_first;
            if (left <= 0) break;
            specc::Vec<Element, VEC> right[COLUMNS];
#pragma unroll
            for (int column = 0; column < COLUMNS; ++column) {
                const int n_ = min(first_column + column, 18432 - 1);
                right[column] = specc::load<VEC>(w_ptr + n_ * w_stride_n_ + k_first);
            }
#pragma unroll
            for (int part = 0; part < ROWS; ++part) {
                const int row = min(part, rows - 1);
                const int t = row;
                const specc::Vec<Element, VEC> factor = specc::load<VEC>(x_ptr + t * x_stride_t + k_first);
#pragma unroll
                for (int column = 0; column < COLUMNS; ++column)
#pragma unroll
                    for (int n = 0; n < VEC; ++n)
                        sums[strand][part][column] += specc::to_real(factor.at[n]) *
                            specc::to_real(right[column].at[n]);
            }
        }
    }

    real acc = 0.0f;
#pragma unroll
    for (int part = 0; part < ROWS; ++part)
#pragma unroll
        for (int column = 0; column < COLUMNS; ++column) {
            const real own = sums[0][part][column] + sums[1][part][column];
            const real sum = specc::reduce_lanes<specc::Sum, specc::WARP>(own);
            if (lane == part * COLUMNS + column) acc = sum;
        }
    const int row = lane / COLUMNS, n_ = first_column + lane % COLUMNS;
    if (row >= rows || row >= ROWS || n_ >= 18432) return;
    const int t = row;
    const auto y_row_2 = y_ptr + t * y_stride_t;
    const real y_2 = acc;
    y_row_2[n_] = specc::round_to<Element>(y_2);
}

/// A block: Shape::M rows and Shape::N columns; the sum in steps of Shape::K, with Shape::STAGES of them under way.
template <typename Element, int VEC, typename Shape>
__global__ void __launch_bounds__(Shape::THREADS) attn_qkv_proj_global_kernel(const Element* __restrict__ x_ptr,
    const Element* __restrict__ w_ptr, Element* __restrict__ y_ptr, int rows, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t) {
    using Left = specc::Tile<Element, Shape::M, Shape::K>;
    using Right = specc::Tile<Element, Shape::N, Shape::K>;
    constexpr int STEPS = specc::ceil_div(5376, Shape::K), PIECES = Shape::K / VEC;
    Element* const shared = specc::dynamic_shared<Element>();
    const auto left_tile = [&](int step) { return Left{shared + step % Shape::STAGES * (Left::SIZE +
        Right::SIZE)}; };
    const auto right_tile = [&](int step) { return Right{left_tile(step).start + Left::SIZE}; };

    const auto block = specc::block_of_product<Shape>(specc::ceil_div(rows, Shape::M),
        specc::ceil_div(18432, Shape::N));
    const int first_m = block.m * Shape::M, first_n = block.n * Shape::N;
    const auto start = [&](int step) {
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::M * PIECES; piece += Shape::THREADS) {
            const int own = first_m + piece / PIECES, k_first = step * Shape::K + piece % PIECES * VEC;
            const int row = min(own, rows - 1), left = own < rows ? 5376 - k_first : 0;
            const int t = row;
            specc::bring<VEC>(left_tile(step).at(piece / PIECES, piece % PIECES * VEC), x_ptr + t *
                x_stride_t + k_first, left);
        }
#pragma unroll specc::AT_ONCE<VEC>
        for (int piece = threadIdx.x; piece < Shape::N * PIECES; piece += Shape::THREADS) {
            const int own = first_n + piece / PIECES, k_first = step * Shape::K + piece % PIECES * VEC;
            const int n_ = min(own, 18432 - 1), left = own < 18432 ? 5376 - k_first : 0;
            specc::bring<VEC>(right_tile(step).at(piece / PIECES, piece % PIECES * VEC), w_ptr + n_ *
                w_stride_n_ + k_first, left);
        }
    };

    const int warp = threadIdx.x / specc::WARP;
    const int warp_m = warp % Shape::WARPS_M * Shape::WARP_M, warp_n = warp / Shape::WARPS_M * Shape::WARP_N;
    real sums[Shape::WARP_M / 16][Shape::WARP_N / 8][4] = {};
#pragma unroll
    for (int step = 0; step < Shape::STAGES - 1; ++step) {
        if (step < STEPS) start(step);
        specc::commit_copies();
    }
    for (int step = 0; step < STEPS; ++step) {
        specc::wait_copies<Shape::STAGES - 2>();
        __syncthreads();
        if (step + Shape::STAGES - 1 < STEPS) start(step + Shape::STAGES - 1);
        specc::commit_copies();
        specc::multiply_rows<Shape::K>(sums, left_tile(step), warp_m, right_tile(step), warp_n);
    }
    specc::wait_copies<0>();
    __syncthreads();

    // Results go through shared memory, so that rows are read and written in vectors.
    real* const results = specc::dynamic_shared<real>();
    constexpr int STRIDE = specc::spread(Shape::N);
    specc::put_fragments(results, STRIDE, warp_m, warp_n, sums);
    __syncthreads();
    for (int piece = threadIdx.x; piece < Shape::M * Shape::N / VEC; piece += Shape::THREADS) {
        const int own = piece / (Shape::N / VEC), across = piece % (Shape::N / VEC) * VEC;
        const int row = first_m + own, n__first = first_n + across;
        if (row >= rows || n__first >= 18432) continue;
        const int t = row;
        const auto acc_v = specc::load<VEC>(results + own * STRIDE + across);
        const auto y_row = y_ptr + t * y_stride_t;
        specc::Vec<Element, VEC> y_v;
#pragma unroll
        for (int n = 0; n < VEC; ++n) {
            const real acc = acc_v.at[n];
            const real y = acc;
            y_v.at[n] = specc::round_to<Element>(y);
        }
        specc::store(y_row + n__first, y_v);
    }
}

}  // namespace gemma_4_31b

#ifndef __CUDACC_RTC__

#include "specc_launch.cuh"

namespace {

template <typename Element, int VEC>
cudaError_t attn_qkv_proj_global_launch(const void* x, const void* w, void* y, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream, int64_t rows) {
    namespace kernels = gemma_4_31b;
    const auto run_few = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream, static_cast<const Element*>(x),
            static_cast<const Element*>(w), static_cast<Element*>(y), int(rows), x_stride_t, w_stride_n_,
            y_stride_t);
    };
    const auto run = [&](auto kernel, specc::Grid grid, int threads, int64_t bytes) {
        return specc::launch(kernel, grid, threads, size_t(bytes), stream, static_cast<const Element*>(x),
            static_cast<const Element*>(w), static_cast<Element*>(y), int(rows), x_stride_t, w_stride_n_,
            y_stride_t);
    };
    if (rows <= 1) return run_few(kernels::attn_qkv_proj_global_few_kernel<Element, VEC, 1, 2>,
        specc::Grid{specc::ceil_div(18432, 16)}, 256, 0);
    if (rows <= 4) return run_few(kernels::attn_qkv_proj_global_few_kernel<Element, VEC, 4, 2>,
        specc::Grid{specc::ceil_div(18432, 16)}, 256, 0);
    if constexpr (sizeof(Element) == 2) {
        if (rows <= 16) {
            using Shape = specc::ProductShape<16, 64, 128, 1, 4, 4, 1>;
            return run(kernels::attn_qkv_proj_global_kernel<Element, VEC, Shape>,
                specc::Grid{Shape::blocks(rows, 18432)}, Shape::THREADS,
                Shape::template shared_bytes<Element>());
        }
        using Shape = specc::ProductShape<128, 128, 32, 2, 4, 4, 8>;
        return run(kernels::attn_qkv_proj_global_kernel<Element, VEC, Shape>,
            specc::Grid{Shape::blocks(rows, 18432)}, Shape::THREADS, Shape::template shared_bytes<Element>());
    } else {
        using Shape = specc::ProductShape<64, 64, 32, 2, 2, 3, 8>;
        return run(kernels::attn_qkv_proj_global_kernel<Element, VEC, Shape>,
            specc::Grid{Shape::blocks(rows, 18432)}, Shape::THREADS, Shape::template shared_bytes<Element>());
    }
}

}  // namespace

extern "C" int gemma_4_31b_attn_qkv_proj_global(int type, const void* x, const void* w, void* y,
    int64_t T, int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream) {
    if (!specc::sizes_fit({T})) return cudaErrorInvalidValue;
    if (T > specc::MOST_ROWS) return cudaErrorInvalidValue;
    const int64_t rows = T;
    if (rows == 0) return cudaSuccess;
    return specc::with_storage(type, [&](auto element) {
        using Element = decltype(element);
        if (specc::aligned(x) && specc::aligned(w) && specc::aligned(y) && specc::aligned(x_stride_t,
            sizeof(Element)) && specc::aligned(w_stride_n_, sizeof(Element)) && specc::aligned(y_stride_t,
            sizeof(Element))) return attn_qkv_proj_global_launch<Element, specc::FULL<Element>>(x, w, y,
            x_stride_t, w_stride_n_, y_stride_t, stream, rows);
        return attn_qkv_proj_global_launch<Element, 1>(x, w, y, x_stride_t, w_stride_n_, y_stride_t,
            stream, rows);
    });
}

#endif
