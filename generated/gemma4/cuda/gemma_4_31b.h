/* Launch wrappers of the kernels beside this file.
 *
 * `type` is the storage type of all real operands: SPECC_BFLOAT16, SPECC_FLOAT16 or SPECC_FLOAT32; accumulators
 * are float32. Index operands hold integers of `index_bytes` (4 or 8) bytes. Above each wrapper stand the shapes
 * of its tensors, operands before results. Sizes and strides count elements; the last axis of every tensor is
 * contiguous. A result must not overlap an operand. All pointers are to device memory. The function declared
 * with a table fills it once, on the host, for a copy to the device. A workspace holds as many float32 elements
 * as the function declared with it returns, at a multiple of 16 bytes. Every wrapper launches on `stream` and
 * returns a cudaError_t. What a kernel computes stands in its own file, NAME.cu. */
#ifndef GEMMA_4_31B_H
#define GEMMA_4_31B_H

#include <stdint.h>

#ifndef SPECC_STORAGE_TYPES
#define SPECC_STORAGE_TYPES
enum { SPECC_BFLOAT16 = 0, SPECC_FLOAT16 = 1, SPECC_FLOAT32 = 2 };
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;

/* tokens[T], w[262144, 5376] -> y[T, 5376] */
int gemma_4_31b_embed(int type, int index_bytes, const void* tokens, const void* w, void* y, int64_t T,
    int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[5376] -> y[T, 5376] */
int gemma_4_31b_input_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[16384, 5376] -> y[T, 16384] */
int gemma_4_31b_attn_qkv_proj_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, rows_1, 256], w[256] -> y[T, rows_1, 256] */
int gemma_4_31b_attn_qk_norm_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream);

/* x[T, 16, 256] -> y[T, 16, 256] */
int gemma_4_31b_attn_v_norm_sliding(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* x[T, rows_1, 256], pos[T], table_[128] -> y[T, rows_1, 256] */
void gemma_4_31b_attn_rope_sliding_table_(double* table);
int gemma_4_31b_attn_rope_sliding(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* q[T, 32, 256], k[L, 16, 256], v[L, 16, 256], pos[T] -> o[T, 32, 256] */
int gemma_4_31b_attn_core_sliding_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

/* q[B, 32, 256], k[B, S, 16, 256], v[B, S, 16, 256], seq_lens[B] -> o[B, 32, 256] */
int64_t gemma_4_31b_attn_core_sliding_decode_workspace(int64_t B, int64_t S);
int gemma_4_31b_attn_core_sliding_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

/* x[T, 8192], w[5376, 8192] -> y[T, 5376] */
int gemma_4_31b_attn_o_proj_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[5376] -> y[T, 5376] */
int gemma_4_31b_post_mix_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], h[T, 5376] -> y[T, 5376] */
int gemma_4_31b_attn_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[5376] -> y[T, 5376] */
int gemma_4_31b_post_attn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[43008, 5376] -> y[T, 43008] */
int gemma_4_31b_mlp_gate_up(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* gu[T, 43008] -> y[T, 21504] */
int gemma_4_31b_mlp_act(int type, const void* gu, void* y, int64_t T, int64_t gu_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 21504], w[5376, 21504] -> y[T, 5376] */
int gemma_4_31b_mlp_down(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[5376] -> y[T, 5376] */
int gemma_4_31b_post_ffn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], h[T, 5376], s[1] -> y[T, 5376] */
int gemma_4_31b_mlp_residual(int type, const void* x, const void* h, const void* s, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[18432, 5376] -> y[T, 18432] */
int gemma_4_31b_attn_qkv_proj_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, rows_1, 512], w[512] -> y[T, rows_1, 512] */
int gemma_4_31b_attn_qk_norm_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream);

/* x[T, 4, 512] -> y[T, 4, 512] */
int gemma_4_31b_attn_v_norm_global(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* x[T, rows_1, 512], pos[T], table_[64] -> y[T, rows_1, 512] */
void gemma_4_31b_attn_rope_global_table_(double* table);
int gemma_4_31b_attn_rope_global(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* q[T, 32, 512], k[L, 4, 512], v[L, 4, 512], pos[T] -> o[T, 32, 512] */
int gemma_4_31b_attn_core_global_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

/* q[B, 32, 512], k[B, S, 4, 512], v[B, S, 4, 512], seq_lens[B] -> o[B, 32, 512] */
int64_t gemma_4_31b_attn_core_global_decode_workspace(int64_t B, int64_t S);
int gemma_4_31b_attn_core_global_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

/* x[T, 16384], w[5376, 16384] -> y[T, 5376] */
int gemma_4_31b_attn_o_proj_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[5376] -> y[T, 5376] */
int gemma_4_31b_final_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5376], w[262144, 5376] -> logits[T, 262144] */
int gemma_4_31b_lm_head(int type, const void* x, const void* w, void* logits, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t logits_stride_t, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
