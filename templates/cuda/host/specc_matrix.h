// Matrix instructions on a CPU: the fragments of a warp, spread over its lanes as the PTX ISA lays them out.
#pragma once

#include <stdint.h>

namespace specc_host {

/// Two storage elements, as a 32-bit register holds them. Float64, which no register of a GPU packs, is widened storage.
template <typename T>
struct Pair {
    T low, high;
};

template <typename T>
struct Matrices {
    const T* row;  // that this lane points to: row `lane % 8` of matrix `lane / 8`
    Pair<T>* to;   // a register for each matrix
    int count;
    bool transposed;
};

/// ldmatrix: 8 rows of 8 elements a matrix; a lane gets row `lane / 4`, columns `2·(lane % 4)` and the next; of the
/// transposed matrix with `.trans`.
template <typename T>
SPECC_PLAIN void load_matrices(void* const* brought, unsigned) {
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Matrices<T>*>(brought[lane]);
        for (int m = 0; m < mine.count; ++m) {
            const int fixed = lane / 4, first = lane % 4 * 2;
            T taken[2];
            for (int n = 0; n < 2; ++n) {
                const int row = mine.transposed ? first + n : fixed, column = mine.transposed ? fixed : first + n;
                taken[n] = static_cast<Matrices<T>*>(brought[m * 8 + row])->row[column];
            }
            mine.to[m] = {taken[0], taken[1]};
        }
    }
}

template <typename T, typename R>
struct Product {
    const Pair<T>*a, *b;
    R* c;
};

/// mma.m16n8k16: c += a·b with products in float64 and one rounding, which is within what the PTX ISA promises.
template <typename T, typename R, R (*value)(T)>
SPECC_PLAIN void multiply_add(void* const* brought, unsigned) {
    R a[16][16], b[16][8];
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product<T, R>*>(brought[lane]);
        const int group = lane / 4, pair = lane % 4 * 2;
        for (int n = 0; n < 4; ++n) {
            const int row = group + n % 2 * 8, column = pair + n / 2 * 8;
            a[row][column] = value(mine.a[n].low), a[row][column + 1] = value(mine.a[n].high);
        }
        for (int n = 0; n < 2; ++n) {
            const int row = pair + n * 8;
            b[row][group] = value(mine.b[n].low), b[row + 1][group] = value(mine.b[n].high);
        }
    }
    for (int lane = 0; lane < 32; ++lane) {
        const auto& mine = *static_cast<Product<T, R>*>(brought[lane]);
        for (int n = 0; n < 4; ++n) {
            const int row = lane / 4 + n / 2 * 8, column = lane % 4 * 2 + n % 2;
            double sum = mine.c[n];
            for (int k = 0; k < 16; ++k) sum += double(a[row][k]) * double(b[k][column]);
            mine.c[n] = R(sum);
        }
    }
}

}  // namespace specc_host
