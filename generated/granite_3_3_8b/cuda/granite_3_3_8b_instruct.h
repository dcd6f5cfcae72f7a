/* Launch wrappers of the kernels beside this file.
 *
 * `type` is the storage type of all real operands: SPECC_BFLOAT16, SPECC_FLOAT16 or SPECC_FLOAT32; accumulators
 * are float32. Index operands hold integers of `index_bytes` (4 or 8) bytes. Above each wrapper stand the shapes
 * of its tensors, operands before results. Sizes and strides count elements; the last axis of every tensor is
 * contiguous. A result must not overlap an operand. All pointers are to device memory. The function declared
 * with a table fills it once, on the host, for a copy to the device. A workspace holds as many float32 elements
 * as the function declared with it returns, at a multiple of 16 bytes. Every wrapper launches on `stream` and
 * returns a cudaError_t. What a kernel computes stands in its own file, NAME.cu. */
#ifndef GRANITE_3_3_8B_INSTRUCT_H
#define GRANITE_3_3_8B_INSTRUCT_H

#include <stdint.h>

#ifndef SPECC_STORAGE_TYPES
#define SPECC_STORAGE_TYPES
enum { SPECC_BFLOAT16 = 0, SPECC_FLOAT16 = 1, SPECC_FLOAT32 = 2 };
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;

/* tokens[T], w[49159, 4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_embed(int type, int index_bytes, const void* tokens, const void* w, void* y,
    int64_t T, int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_input_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[6144, 4096] -> y[T, 6144] */
int granite_3_3_8b_instruct_attn_qkv_proj(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, rows_1, 128], pos[T], table_[64] -> y[T, rows_1, 128] */
void granite_3_3_8b_instruct_attn_rope_table_(double* table);
int granite_3_3_8b_instruct_attn_rope(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* q[T, 32, 128], k[L, 8, 128], v[L, 8, 128], pos[T] -> o[T, 32, 128] */
int granite_3_3_8b_instruct_attn_core_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

/* q[B, 32, 128], k[B, S, 8, 128], v[B, S, 8, 128], seq_lens[B] -> o[B, 32, 128] */
int64_t granite_3_3_8b_instruct_attn_core_decode_workspace(int64_t B, int64_t S);
int granite_3_3_8b_instruct_attn_core_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

/* x[T, 4096], w[4096, 4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_attn_o_proj(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], h[T, 4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_attn_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_post_attn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[25600, 4096] -> y[T, 25600] */
int granite_3_3_8b_instruct_mlp_gate_up(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* gu[T, 25600] -> y[T, 12800] */
int granite_3_3_8b_instruct_mlp_act(int type, const void* gu, void* y, int64_t T, int64_t gu_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 12800], w[4096, 12800] -> y[T, 4096] */
int granite_3_3_8b_instruct_mlp_down(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], h[T, 4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_mlp_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[4096] -> y[T, 4096] */
int granite_3_3_8b_instruct_final_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 4096], w[49159, 4096] -> logits[T, 49159] */
int granite_3_3_8b_instruct_lm_head(int type, const void* x, const void* w, void* logits, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t logits_stride_t, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
