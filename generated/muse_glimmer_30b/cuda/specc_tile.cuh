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

/// Copies of a thread that are printed one after the other: many of whole vectors, few of single elements.
template <int VEC>
constexpr int AT_ONCE = VEC > 1 ? 4 : 1;

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
#pragma unroll 2
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
#pragma unroll 2
        for (int k = 0; k < K; k += 16) {
            Pair<T> left[M][4];
#pragma unroll
            for (int m = 0; m < M; ++m) load_left(left[m], a, a_row + m * 16, k);
            constexpr int PART = N % 2 == 0 ? 2 : 1;  // so that few registers hold second factors
#pragma unroll
            for (int n = 0; n < N; n += PART) {
                Pair<T> right[PART][2];
                load_right_transposed(right, b, k, b_column + n * 8);
#pragma unroll
                for (int m = 0; m < M; ++m)
#pragma unroll
                    for (int i = 0; i < PART; ++i) multiply_add(sums[m][n + i], left[m], right[i]);
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

/// For every element of A·Bᵀ: `each(row, column, sum)`. All warps of the block take part, `WARPS` of them.
template <int WARPS, typename T, int M, int N, int K, typename Each>
__device__ __forceinline__ void product_of_rows(Tile<T, M, K> a, Tile<T, N, K> b, Each each) {
    for (int part = int(threadIdx.x) / WARP; part < M / 16 * (N / 16); part += WARPS) {
        const int row = part / (N / 16) * 16, column = part % (N / 16) * 16;
        real sums[1][2][4] = {};
        multiply_rows<K>(sums, a, row, b, column);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            each(row + fragment_row(e % 4), column + e / 4 * 8 + fragment_column(e % 4), sums[0][e / 4][e % 4]);
    }
}

/// As `product_of_rows`, for A·B.
template <int WARPS, typename T, int M, int N, int K, typename Each>
__device__ __forceinline__ void product_of_columns(Tile<T, M, K> a, Tile<T, K, N> b, Each each) {
    for (int part = int(threadIdx.x) / WARP; part < M / 16 * (N / 16); part += WARPS) {
        const int row = part / (N / 16) * 16, column = part % (N / 16) * 16;
        real sums[1][2][4] = {};
        multiply_columns<K>(sums, a, row, b, column);
#pragma unroll
        for (int e = 0; e < 8; ++e)
            each(row + fragment_row(e % 4), column + e / 4 * 8 + fragment_column(e % 4), sums[0][e / 4][e % 4]);
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
constexpr __host__ __device__ int64_t at_most(int64_t a, int64_t b) { return a < b ? a : b; }

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
    static constexpr __host__ __device__ int64_t blocks(int64_t rows, int64_t columns) {
        return ceil_div(rows, M) * ceil_div(columns, N);
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

// ---- attention ---------------------------------------------------------------------------------------------------

/// A block's share of attention: ROWS queries, 16 to a warp, against KEYS keys at a time. WARPS_D warps have the same
/// queries; they share out the keys of a score, and the columns of the values. E elements of a query and D of a value.
template <int ROWS_, int KEYS_, int WARPS_D_, int E_, int D_>
struct AttentionShape {
    static constexpr int ROWS = ROWS_, KEYS = KEYS_, WARPS_D = WARPS_D_, WARPS = ROWS / 16 * WARPS_D;
    static constexpr int THREADS = WARPS * WARP;
    static constexpr int E = int(ceil_div(E_, 16) * 16), D = int(ceil_div(D_, 16 * WARPS_D) * 16 * WARPS_D);
    static constexpr int WARP_KEYS = KEYS / WARPS_D, WARP_D = D / WARPS_D;
    static_assert(ROWS % 16 == 0 && KEYS % 16 == 0 && WARP_KEYS % 8 == 0, "warps have whole fragments");

    template <typename T>
    static constexpr __host__ __device__ int64_t shared_bytes() {
        const int64_t tiles = (int64_t(ROWS) * E + KEYS * E + KEYS * D + ROWS * KEYS) * sizeof(T);
        return at_least(tiles, int64_t(ROWS) * spread(D) * sizeof(real));
    }
};

/// Which of its rows, keys and columns a warp has.
template <typename Shape>
struct WarpOfAttention {
    int number = int(threadIdx.x) / WARP;
    int part = number % Shape::WARPS_D;
    int row = number / Shape::WARPS_D * 16, key = part * Shape::WARP_KEYS, column = part * Shape::WARP_D;
};

/// Tiles of a block in dynamic shared memory.
template <typename T, typename Shape>
struct AttentionTiles {
    Tile<T, Shape::ROWS, Shape::E> q{dynamic_shared<T>()};
    Tile<T, Shape::KEYS, Shape::E> k{q.start + q.SIZE};
    Tile<T, Shape::KEYS, Shape::D> v{k.start + k.SIZE};
    Tile<T, Shape::ROWS, Shape::KEYS> weights{v.start + v.SIZE};
};

/// Joins the values of all lanes that have the same two rows of a fragment. `scratch`: shared memory of ROWS·WARPS_D
/// numbers that nobody else uses until the next barrier but one.
template <typename Op, typename Shape>
__device__ __forceinline__ void reduce_rows(real (&values)[2], real* scratch, const WarpOfAttention<Shape>& warp) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        values[half] = Op::join(values[half], __shfl_xor_sync(EVERY_LANE, values[half], 1));
        values[half] = Op::join(values[half], __shfl_xor_sync(EVERY_LANE, values[half], 2));
    }
    if constexpr (Shape::WARPS_D > 1) {
        real* const own = scratch + warp.row + fragment_row(0);
        if (lane_of_warp() % 4 == 0) {
            own[warp.part * Shape::ROWS] = values[0];
            own[warp.part * Shape::ROWS + 8] = values[1];
        }
        __syncthreads();
#pragma unroll
        for (int part = 0; part < Shape::WARPS_D; ++part) {
            values[0] = part == 0 ? own[0] : Op::join(values[0], own[part * Shape::ROWS]);
            values[1] = part == 0 ? own[8] : Op::join(values[1], own[part * Shape::ROWS + 8]);
        }
    }
}

#ifdef SPECC_WIDENED
constexpr real LOWEST = -1.7976931348623157e308;
#else
constexpr real LOWEST = -3.4028234663852886e38f;
#endif

/// The score of a key that a row sees, told apart from -inf, which is that of a key that it does not see.
__device__ __forceinline__ real seen_score(real score) { return score == Max::neutral() ? LOWEST : score; }

/// What the weighted sum of a row is divided by, whose scores are at most `top` and whose weights have the sum `total`: 1
/// where it saw no key, NaN where all that it saw had a score of -inf.
__device__ __forceinline__ real divisor(real top, real total) {
    return top == LOWEST ? not_a_number() : total == 0.0f ? real(1) : total;
}

/// Positions that are only compared with what is nearer are cut to this distance from 0.
__device__ __forceinline__ int position(int64_t index) {
    constexpr int64_t FARTHEST = 3 << 29;
    return int(index < -FARTHEST ? -FARTHEST : index > FARTHEST ? FARTHEST : index);
}

/// `index`, or the end of 0..`most` that is next to it.
__device__ __forceinline__ int within(int64_t index, int most) {
    return index < 0 ? 0 : index > most ? most : int(index);
}

/// The least `low` and the largest `high` of the threads of a block.
struct Range {
    int first, last;
};
template <int WARPS>
__device__ __forceinline__ Range block_range(int low, int high, Range* scratch) {
#pragma unroll
    for (int bits = WARP / 2; bits > 0; bits /= 2) {
        low = min(low, __shfl_xor_sync(EVERY_LANE, low, bits));
        high = max(high, __shfl_xor_sync(EVERY_LANE, high, bits));
    }
    if (lane_of_warp() == 0) scratch[threadIdx.x / WARP] = {low, high};
    __syncthreads();
    Range all = scratch[0];
#pragma unroll
    for (int n = 1; n < WARPS; ++n) all = {min(all.first, scratch[n].first), max(all.last, scratch[n].last)};
    return all;
}

__device__ __forceinline__ bool finite(real x) { return fabs(x) < -Max::neutral(); }

// ---- recurrences -------------------------------------------------------------------------------------------------

/// A block's share of a recurrence: VALUES rows of a head's state of KEYS columns (rounded up), CHUNK steps at a time.
/// VECTORS of keys a step, SQUARES of CHUNK by CHUNK numbers and STRIPS of VALUES by CHUNK are in shared memory.
template <int CHUNK_, int VALUES_, int KEYS_, int WARPS_, int VECTORS_, int SQUARES_, int STRIPS_>
struct RecurrenceShape {
    static constexpr int CHUNK = CHUNK_, VALUES = VALUES_, KEYS = int(ceil_div(KEYS_, 16) * 16), WARPS = WARPS_;
    static constexpr int THREADS = WARPS * WARP;
    using State = Tile<real, VALUES, KEYS>;
    using Vectors = Tile<real, CHUNK, KEYS>;
    using Square = Tile<real, CHUNK, CHUNK>;
    using Strip = Tile<real, VALUES, CHUNK>;
    static constexpr int VECTORS = State::SIZE, SQUARES = VECTORS + VECTORS_ * Vectors::SIZE,
                         STRIPS = SQUARES + SQUARES_ * Square::SIZE, NUMBERS = STRIPS + STRIPS_ * Strip::SIZE;

    static constexpr __host__ __device__ int64_t shared_bytes() { return int64_t(NUMBERS + 3 * CHUNK) * sizeof(real); }
};

/// Products of decays: `since[t]` of those up to step t, `fade(s, t)` of those after step s, 0 where t is earlier.
template <int THREADS, int CHUNK>
__device__ __forceinline__ void multiply_decays(const real* decay, real* since, Tile<real, CHUNK, CHUNK> fade) {
    for (int s = threadIdx.x; s < CHUNK; s += THREADS) {
        real product = 1.0f;
        for (int t = 0; t < CHUNK; ++t) {
            if (t > s) product *= decay[t];
            *fade.at(s, t) = t >= s ? product : real(0);
            if (s == 0) since[t] = decay[0] * product;
        }
    }
}

/// For every element of A·B, whose terms are those of steps up to its own: `each(value, step, sum)`. What a later step
/// holds takes no part, be it NaN.
template <int THREADS, int VALUES, int CHUNK, typename Each>
__device__ __forceinline__ void sum_of_steps(Tile<real, VALUES, CHUNK> a, Tile<real, CHUNK, CHUNK> b, Each each) {
    for (int place = threadIdx.x; place < VALUES * CHUNK; place += THREADS) {
        const int value = place / CHUNK, step = place % CHUNK;
        real sum = 0;
        for (int s = 0; s <= step; ++s) sum += *a.at(value, s) * *b.at(s, step);
        each(value, step, sum);
    }
}

/// Solves x(t) + Σ over s < t of pull(s, t)·x(s) = given(t) for every row, from the first step on, in place.
template <int THREADS, int VALUES, int CHUNK>
__device__ __forceinline__ void solve_steps(Tile<real, VALUES, CHUNK> given, Tile<real, CHUNK, CHUNK> pull) {
    for (int row = threadIdx.x; row < VALUES; row += THREADS)
        for (int t = 1; t < CHUNK; ++t) {
            real x = *given.at(row, t);
            for (int s = 0; s < t; ++s) x -= *pull.at(s, t) * *given.at(row, s);
            *given.at(row, t) = x;
        }
}

}  // namespace specc
