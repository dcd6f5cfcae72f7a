// Storage types and arithmetic of CUDA on a CPU: bfloat16 and float16 rounded to nearest even, elementary functions.
#pragma once

#include <stdint.h>

namespace specc_host {

inline uint32_t bits_of(float x) { return __builtin_bit_cast(uint32_t, x); }
inline float float_of(uint32_t bits) { return __builtin_bit_cast(float, bits); }

/// The nearest bfloat16, ties to even; every NaN becomes the canonical one, as on a GPU.
inline uint16_t to_bfloat16(float x) {
    if (x != x) return 0x7fff;
    const uint32_t bits = bits_of(x);
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// The nearest float16, ties to even, with subnormals; large numbers become infinite.
inline uint16_t to_float16(float x) {
    if (x != x) return 0x7fff;
    const uint32_t bits = bits_of(x), magnitude = bits & 0x7fffffff;
    const uint16_t sign = uint16_t(bits >> 16 & 0x8000);
    if (magnitude >= 0x477ff000) return sign | 0x7c00;  // 65520 and above
    if (magnitude < 0x38800000) {                       // below 2^-14: multiples of 2^-24, which adding 0.5 rounds to
        const float sum = float_of(magnitude) + 0.5f;
        return uint16_t(sign | (bits_of(sum) - bits_of(0.5f)));
    }
    return uint16_t(sign | ((magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

inline float from_float16(uint16_t half) {
    const uint32_t sign = uint32_t(half & 0x8000) << 16, rest = half & 0x7fff;
    if (rest >= 0x7c00) return float_of(sign | 0x7f800000 | (rest & 0x3ff) << 13);
    if (rest < 0x400) return float_of(sign | bits_of(float(rest) * 0x1p-24f));
    return float_of(sign | ((rest << 13) + 0x38000000));
}

}  // namespace specc_host

struct __nv_bfloat16 {
    uint16_t bits;
};
struct __half {
    uint16_t bits;
};
inline float __bfloat162float(__nv_bfloat16 x) { return specc_host::float_of(uint32_t(x.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return {specc_host::to_bfloat16(x)}; }
inline float __half2float(__half x) { return specc_host::from_float16(x.bits); }
inline __half __float2half_rn(float x) { return {specc_host::to_float16(x)}; }

#define SPECC_FUNCTION(name)                                      \
    inline float name(float x) { return __builtin_##name##f(x); } \
    inline double name(double x) { return __builtin_##name(x); }
SPECC_FUNCTION(exp)
SPECC_FUNCTION(exp2)
SPECC_FUNCTION(log)
SPECC_FUNCTION(log1p)
SPECC_FUNCTION(expm1)
SPECC_FUNCTION(sqrt)
SPECC_FUNCTION(tanh)
SPECC_FUNCTION(sin)
SPECC_FUNCTION(cos)
SPECC_FUNCTION(fabs)
SPECC_FUNCTION(floor)
SPECC_FUNCTION(rint)
#undef SPECC_FUNCTION

inline double pow(double x, double y) { return __builtin_pow(x, y); }
inline float fmax(float x, float y) { return __builtin_fmaxf(x, y); }
inline double fmax(double x, double y) { return __builtin_fmax(x, y); }
inline float fmin(float x, float y) { return __builtin_fminf(x, y); }
inline double fmin(double x, double y) { return __builtin_fmin(x, y); }
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }

/// sin(πx) and cos(πx) for |x| <= 1, by way of float64.
inline float sinpif(float x) { return float(__builtin_sin(3.14159265358979323846 * x)); }
inline float cospif(float x) { return float(__builtin_cos(3.14159265358979323846 * x)); }
inline float __int_as_float(int bits) { return __builtin_bit_cast(float, bits); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline bool isnan(float x) { return x != x; }
inline bool isnan(double x) { return x != x; }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }
