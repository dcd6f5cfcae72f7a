// Tiles in shared memory, and products of them by the warps of a block: on tensor cores for 16-bit storage, with
// multiply-adds in float32 for float32.
#pragma once

#include "specc_device.cuh"

namespace specc {

/// Whether products of a storage type go to matrix instructions (float64 is what the CPU widens storage to).
template <typename T>
constexpr bool MATRIX = sizeof(T) != 4;

/// Elements that stay together in shared memory: a row of an 8 by 8 matrix, or 16 bytes.
template <typename T>
constexpr int CHUNK = MATRIX<T> ? 8 : 4;

/// The largest power of two that divides `n`, at most 8.
constexpr __host__ __device__ int power_in(int n) { return n % 8 == 0 ? 8 : n % 4 == 0 ? 4 : n % 2 == 0 ? 2 : 1; }

/// A matrix in shared memory. Chunks of a row change places, so that equal columns of 8 rows lie in different banks.
template <typename T, int ROWS_, int COLUMNS_>
struct Tile {
    static constexpr int ROWS = ROWS_, COLUMNS = COLUMNS_, SIZE = ROWS * COLUMNS;
    static constexpr int SWAPPED = power_in(COLUMNS / CHUNK<T>);
    static_assert(COLUMNS % CHUNK<T> == 0, "rows are whole chunks");
    T* start;

    __device__ __forceinline__ T* at(int row, int column) const {
        const int chunk = column / CHUNK<T> ^ row / (8 / SWAPPED) % SWAPPED;
        return start + row * COLUMNS + chunk * CHUNK<T> + column % CHUNK<T>;
    }
};

/// Brings `N` neighbouring elements of a row to shared memory; those after the first `left` become 0. They are there as
/// those of `copy_async` are.
template <int N, typename T>
__device__ __forceinline__ void bring(T* to, const T* from, int left) {
    if constexpr (N * sizeof(T) >= 4) {
        if (left <= 0 || left >= N) {
            copy_async<N>(to, from, left > 0);
            return;
        }
    }
#pragma unroll
    for (int n = 0; n < N; ++n) to[n] = n < left ? from[n] : round_to<T>(0.0f);
}

// ---- products of a warp ------------------------------------------------------------------------------------------

// A warp holds a product as fragments of 16 rows and 8 columns; of each, a lane has 4 elements.
__device__ __forceinline__ int lane_of_warp() { return int(threadIdx.x) % WARP; }
__device__ __forceinline__ int fragment_row(int e) { return lane_of_warp() / 4 + e / 2 * 8; }
__device__ __forceinline__ int fragment_column(int e) { return lane_of_warp() % 4 * 2 + e % 2; }

/// Rows [row, row + 16) and columns [k, k + 16) of a tile, as the first factor of `multiply_add`.
template <typename T, int R, int C>
__device__ __forceinline__ void load_left(Pair<T> (&to)[4], Tile<T, R, C> tile, int row, int k) {
    const int lane = lane_of_warp();
    load_matrices<4, false>(to, tile.at(row + lane % 16, k + lane / 16 * 8));
}

/// Columns [k, k + 16) of rows [row, row + 8·N): N second factors of `multiply_add`, one per 8 rows.
template <int N, typename T, int R, int C>
__device__ __forceinline__ void load_right(Pair<T> (&to)[N][2], Tile<T, R, C> tile, int row, int k) {
    const int lane = lane_of_warp();
#pragma unroll
    for (int n = 0; n + 1 < N; n += 2)
        load_matrices<4, false>(to[n], tile.at(row + n * 8 + lane / 16 * 8 + lane % 8, k + lane / 8 % 2 * 8));
    if constexpr (N % 2 == 1) load_matrices<2, false>(to[N - 1], tile.at(row + (N - 1) * 8 + lane % 8, k + lane / 8 % 2 * 8));
}

/// As `load_right`, of a tile whose rows are the terms of the sum: rows [k, k + 16), columns [column, column + 8·N).
template <int N, typename T, int R, int C>
__device__ __forceinline__ void load_right_transposed(Pair<T> (&to)[N][2], Tile<T, R, C> tile, int k, int column) {
    const int lane = lane_of_warp();
#pragma unroll
    for (int n = 0; n + 1 < N; n += 2)
        load_matrices<4, true>(to[n], tile.at(k + lane % 16, column + n * 8 + lane / 16 * 8));
    if constexpr (N % 2 == 1) load_matrices<2, true>(to[N - 1], tile.at(k + lane % 16, column + (N - 1) * 8));
}

/// sums += A·Bᵀ over K terms: rows of `a` from `a_row` on, and rows of `b` from `b_row` on.
template <int K, int M, int N, typename T, int RA, int CA, int RB, int CB>
__device__ __forceinline__ void multiply_rows(real (&sums)[M][N][4], Tile<T, RA, CA> a, int a_row, Tile<T, RB, CB> b,
                                              int b_row) {
    if constexpr (MATRIX<T>) {
#pragma unroll
        for (int k = 0; k < K; k += 16) {
            Pair<T> left[M][4], right[N][2];
#pragma unroll
            for (int m = 0; m < M; ++m) load_left(left[m], a, a_row + m * 16, k);
            load_right(right, b, b_row, k);
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int n = 0; n < N; ++n) multiply_add(sums[m][n], left[m], right[n]);
        }
    } else {
        constexpr int E = CHUNK<T>;
#pragma unroll 1
        for (int k = 0; k < K; k += E) {
            Vec<T, E> left[M][2];
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    left[m][half] = load<E>(a.at(a_row + m * 16 + fragment_row(half * 2), k));
#pragma unroll
            for (int n = 0; n < N; ++n) {
                const Vec<T, E> right[2] = {load<E>(b.at(b_row + n * 8 + fragment_column(0), k)),
                                            load<E>(b.at(b_row + n * 8 + fragment_column(1), k))};
#pragma unroll
                for (int m = 0; m < M; ++m)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
#pragma unroll
                        for (int i = 0; i < E; ++i)
                            sums[m][n][e] += to_real(left[m][e / 2].at[i]) * to_real(right[e % 2].at[i]);
            }
        }
    }
}

/// sums += A·B over K terms: rows of `a` from `a_row` on, and columns of `b` from `b_column` on.
template <int K, int M, int N, typename T, int RA, int CA, int RB, int CB>
__device__ __forceinline__ void multiply_columns(real (&sums)[M][N][4], Tile<T, RA, CA> a, int a_row, Tile<T, RB, CB> b,
                                                 int b_column) {
    if constexpr (MATRIX<T>) {
#pragma unroll
        for (int k = 0; k < K; k += 16) {
            Pair<T> left[M][4];
#pragma unroll
            for (int m = 0; m < M; ++m) load_left(left[m], a, a_row + m * 16, k);
            constexpr int AT_ONCE = N % 2 == 0 ? 2 : 1;  // so that few registers hold second factors
#pragma unroll
            for (int n = 0; n < N; n += AT_ONCE) {
                Pair<T> right[AT_ONCE][2];
                load_right_transposed(right, b, k, b_column + n * 8);
#pragma unroll
                for (int m = 0; m < M; ++m)
#pragma unroll
                    for (int i = 0; i < AT_ONCE; ++i) multiply_add(sums[m][n + i], left[m], right[i]);
            }
        }
    } else {
        constexpr int E = CHUNK<T>;
#pragma unroll 1
        for (int k = 0; k < K; k += E) {
            Vec<T, E> left[M][2];
#pragma unroll
            for (int m = 0; m < M; ++m)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    left[m][half] = load<E>(a.at(a_row + m * 16 + fragment_row(half * 2), k));
#pragma unroll
            for (int i = 0; i < E; ++i)
#pragma unroll
                for (int n = 0; n < N; ++n) {
                    const Vec<T, 2> right = load<2>(b.at(k + i, b_column + n * 8 + fragment_column(0)));
#pragma unroll
                    for (int m = 0; m < M; ++m)
#pragma unroll
                        for (int e = 0; e < 4; ++e)
                            sums[m][n][e] += to_real(left[m][e / 2].at[i]) * to_real(right.at[e % 2]);
                }
        }
    }
}

/// Columns between the rows of a matrix of results in shared memory, so that fragments hit different banks.
constexpr __host__ __device__ int spread(int columns) { return columns + 8; }

/// Writes the fragments of a warp to a matrix of results whose rows lie `stride` apart.
template <int M, int N>
__device__ __forceinline__ void put_fragments(real* results, int stride, int row, int column, const real (&sums)[M][N][4]) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
        for (int n = 0; n < N; ++n)
#pragma unroll
            for (int e = 0; e < 4; ++e)
                results[(row + m * 16 + fragment_row(e)) * stride + column + n * 8 + fragment_column(e)] = sums[m][n][e];
}

// ---- shapes of blocks --------------------------------------------------------------------------------------------

constexpr __host__ __device__ int64_t at_least(int64_t a, int64_t b) { return a > b ? a : b; }

/// A block's share of a product of matrices: M rows and N columns in WARPS_M by WARPS_N warps, K terms of the sums at a
/// time, STAGES of those under way. GROUP blocks of rows that need the same columns follow each other.
template <int M_, int N_, int K_, int WARPS_M_, int WARPS_N_, int STAGES_, int GROUP_>
struct ProductShape {
    static constexpr int M = M_, N = N_, K = K_, WARPS_M = WARPS_M_, WARPS_N = WARPS_N_, STAGES = STAGES_, GROUP = GROUP_;
    static constexpr int THREADS = WARPS_M * WARPS_N * WARP;
    static constexpr int WARP_M = M / WARPS_M, WARP_N = N / WARPS_N;
    static_assert(WARP_M % 16 == 0 && WARP_N % 8 == 0 && K % 16 == 0, "warps have whole fragments");

    template <typename T>
    static constexpr __host__ __device__ int64_t shared_bytes() {
        return at_least(int64_t(STAGES) * (M + N) * K * sizeof(T), int64_t(M) * spread(N) * sizeof(real));
    }
    /// Blocks of a product of `rows` rows and `columns` columns.
    static constexpr __host__ __device__ unsigned blocks(int64_t rows, int64_t columns) {
        return unsigned(ceil_div(rows, M) * ceil_div(columns, N));
    }
};

/// Which rows and columns a block has.
struct BlockOfProduct {
    int m, n;
};
template <typename Shape>
__device__ __forceinline__ BlockOfProduct block_of_product(int blocks_m, int blocks_n) {
    const int number = blockIdx.x, first = number / (Shape::GROUP * blocks_n) * Shape::GROUP;
    const int group = blocks_m - first < Shape::GROUP ? blocks_m - first : Shape::GROUP;
    const int rest = number - first * blocks_n;
    return {first + rest % group, rest / group};
}

}  // namespace specc
