/* Launch wrappers of the kernels beside this file.
 *
 * `type` is the storage type of all real operands: SPECC_BFLOAT16, SPECC_FLOAT16 or SPECC_FLOAT32; accumulators
 * are float32. Index operands hold integers of `index_bytes` (4 or 8) bytes. Sizes and strides count elements;
 * the last axis of every tensor is contiguous. A table is filled once, on the host, by the function declared
 * with it. A workspace is device memory of as many float32 elements as the function declared with it returns, at
 * a multiple of 16 bytes. Every function launches on `stream` and returns a cudaError_t. What a kernel computes stands in its own file,
 * NAME.cu. */
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

int gemma_4_31b_embed(int type, int index_bytes, const void* tokens, const void* w, void* y, int64_t T,
    int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_input_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_attn_qkv_proj_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_attn_qk_norm_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream);

int gemma_4_31b_attn_v_norm_sliding(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

void gemma_4_31b_attn_rope_sliding_table_(double* table);
int gemma_4_31b_attn_rope_sliding(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

int gemma_4_31b_attn_core_sliding_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

int64_t gemma_4_31b_attn_core_sliding_decode_workspace(int64_t B, int64_t S);
int gemma_4_31b_attn_core_sliding_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

int gemma_4_31b_attn_o_proj_sliding(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_post_mix_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_attn_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_post_attn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_mlp_gate_up(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_mlp_act(int type, const void* gu, void* y, int64_t T, int64_t gu_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_mlp_down(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_post_ffn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_mlp_residual(int type, const void* x, const void* h, const void* s, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_attn_qkv_proj_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_attn_qk_norm_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream);

int gemma_4_31b_attn_v_norm_global(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

void gemma_4_31b_attn_rope_global_table_(double* table);
int gemma_4_31b_attn_rope_global(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

int gemma_4_31b_attn_core_global_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

int64_t gemma_4_31b_attn_core_global_decode_workspace(int64_t B, int64_t S);
int gemma_4_31b_attn_core_global_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

int gemma_4_31b_attn_o_proj_global(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_final_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

int gemma_4_31b_lm_head(int type, const void* x, const void* w, void* logits, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t logits_stride_t, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
