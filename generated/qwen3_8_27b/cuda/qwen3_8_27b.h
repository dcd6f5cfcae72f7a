/* Launch wrappers of the kernels beside this file.
 *
 * `type` is the storage type of all real operands: SPECC_BFLOAT16, SPECC_FLOAT16 or SPECC_FLOAT32; accumulators
 * are float32. Index operands hold integers of `index_bytes` (4 or 8) bytes. Above each wrapper stand the shapes
 * of its tensors, operands before results. Sizes and strides count elements; the last axis of every tensor is
 * contiguous. A result must not overlap an operand. All pointers are to device memory. The function declared
 * with a table fills it once, on the host, for a copy to the device. A workspace holds as many float32 elements
 * as the function declared with it returns, at a multiple of 16 bytes. Every wrapper launches on `stream` and
 * returns a cudaError_t. What a kernel computes stands in its own file, NAME.cu. */
#ifndef QWEN3_8_27B_H
#define QWEN3_8_27B_H

#include <stdint.h>

#ifndef SPECC_STORAGE_TYPES
#define SPECC_STORAGE_TYPES
enum { SPECC_BFLOAT16 = 0, SPECC_FLOAT16 = 1, SPECC_FLOAT32 = 2 };
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUstream_st* cudaStream_t;

/* tokens[T], w[248320, 5120] -> y[T, 5120] */
int qwen3_8_27b_embed(int type, int index_bytes, const void* tokens, const void* w, void* y, int64_t T,
    int64_t w_stride_tokens, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[5120] -> y[T, 5120] */
int qwen3_8_27b_input_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[16480, 5120] -> y[T, 16480] */
int qwen3_8_27b_gdn_in_proj_delta(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* c[3, 10240], x[T, 10240] -> c2[3, 10240] */
int qwen3_8_27b_gdn_conv_delta_prefill_c2(int type, const void* c, const void* x, void* c2, int64_t T,
    int64_t c_stride_d0, int64_t x_stride_d0, int64_t c2_stride_j, cudaStream_t stream);

/* c[3, 10240], x[T, 10240], w[10240, 4] -> y[T, 10240] */
int qwen3_8_27b_gdn_conv_delta_prefill_y(int type, const void* c, const void* x, const void* w, void* y,
    int64_t T, int64_t c_stride_d0, int64_t x_stride_d0, int64_t w_stride_i, int64_t y_stride_t,
    cudaStream_t stream);

/* c[B, 3, 10240], x[B, 10240] -> c2[B, 3, 10240] */
int qwen3_8_27b_gdn_conv_delta_decode_c2(int type, const void* c, const void* x, void* c2, int64_t B,
    int64_t c_stride_b, int64_t c_stride_d1, int64_t x_stride_b, int64_t c2_stride_b, int64_t c2_stride_j,
    cudaStream_t stream);

/* c[B, 3, 10240], x[B, 10240], w[10240, 4] -> y[B, 10240] */
int qwen3_8_27b_gdn_conv_delta_decode_y(int type, const void* c, const void* x, const void* w, void* y,
    int64_t B, int64_t c_stride_b, int64_t c_stride_d1, int64_t x_stride_b, int64_t w_stride_i,
    int64_t y_stride_b, cudaStream_t stream);

/* x[T, 16, 128] -> y[T, 16, 128] */
int qwen3_8_27b_gdn_qk_norm_delta(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* x[T, 16, 128] -> y[T, 16, 128] */
int qwen3_8_27b_gdn_q_scale_delta(int type, const void* x, void* y, int64_t T, int64_t x_stride_t,
    int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* a[T, 48], b[T, 48], A_log[48], dt_bias[48] -> alpha[T, 48], beta[T, 48] */
int qwen3_8_27b_gdn_gates_delta(int type, const void* a, const void* b, const void* A_log,
    const void* dt_bias, void* alpha, void* beta, int64_t T, int64_t a_stride_t, int64_t b_stride_t,
    int64_t alpha_stride_t, int64_t beta_stride_t, cudaStream_t stream);

/* S0[48, 128, 128], q[T, 16, 128], k[T, 16, 128], v[T, 48, 128], alpha[T, 48], beta[T, 48] -> S[48, 128,
 * 128], o[T, 48, 128] */
int qwen3_8_27b_gdn_core_delta_prefill(int type, const void* S0, const void* q, const void* k,
    const void* v, const void* alpha, const void* beta, void* S, void* o, int64_t T, int64_t S0_stride_h,
    int64_t S0_stride_a, int64_t q_stride_t, int64_t q_stride_d1, int64_t k_stride_t, int64_t k_stride_d1,
    int64_t v_stride_t, int64_t v_stride_h, int64_t alpha_stride_t, int64_t beta_stride_t, int64_t S_stride_h,
    int64_t S_stride_a, int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

/* S0[B, 48, 128, 128], q[B, 16, 128], k[B, 16, 128], v[B, 48, 128], alpha[B, 48], beta[B, 48] -> S[B, 48,
 * 128, 128], o[B, 48, 128] */
int qwen3_8_27b_gdn_core_delta_decode(int type, const void* S0, const void* q, const void* k,
    const void* v, const void* alpha, const void* beta, void* S, void* o, int64_t B, int64_t S0_stride_s,
    int64_t S0_stride_h, int64_t S0_stride_a, int64_t q_stride_s, int64_t q_stride_d1, int64_t k_stride_s,
    int64_t k_stride_d1, int64_t v_stride_s, int64_t v_stride_h, int64_t alpha_stride_s,
    int64_t beta_stride_s, int64_t S_stride_s, int64_t S_stride_h, int64_t S_stride_a, int64_t o_stride_s,
    int64_t o_stride_h, cudaStream_t stream);

/* x[T, 48, 128], z[T, 48, 128], w[128] -> y[T, 48, 128] */
int qwen3_8_27b_gdn_norm_delta(int type, const void* x, const void* z, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t x_stride_h, int64_t z_stride_t, int64_t z_stride_h, int64_t y_stride_t,
    int64_t y_stride_h, cudaStream_t stream);

/* x[T, 6144], w[5120, 6144] -> y[T, 5120] */
int qwen3_8_27b_gdn_out_proj_delta(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[14336, 5120] -> y[T, 14336] */
int qwen3_8_27b_attn_qkv_proj_full(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, rows_1, 256], w[256] -> y[T, rows_1, 256] */
int qwen3_8_27b_attn_qk_norm_full(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h, int64_t y_stride_t, int64_t y_stride_h,
    cudaStream_t stream);

/* x[T, rows_1, 256], pos[T], table_[32] -> y[T, rows_1, 256] */
void qwen3_8_27b_attn_rope_full_table_(double* table);
int qwen3_8_27b_attn_rope_full(int type, int index_bytes, const void* x, const void* pos, void* y,
    const double* table_, int64_t T, int64_t rows_1, int64_t x_stride_t, int64_t x_stride_h,
    int64_t y_stride_t, int64_t y_stride_h, cudaStream_t stream);

/* q[T, 24, 256], k[L, 4, 256], v[L, 4, 256], pos[T] -> o[T, 24, 256] */
int qwen3_8_27b_attn_core_full_prefill(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* pos, void* o, int64_t T, int64_t L, int64_t q_stride_t, int64_t q_stride_h,
    int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_l, int64_t v_stride_kv_head,
    int64_t o_stride_t, int64_t o_stride_h, cudaStream_t stream);

/* q[B, 24, 256], k[B, S, 4, 256], v[B, S, 4, 256], seq_lens[B] -> o[B, 24, 256] */
int64_t qwen3_8_27b_attn_core_full_decode_workspace(int64_t B, int64_t S);
int qwen3_8_27b_attn_core_full_decode(int type, int index_bytes, const void* q, const void* k,
    const void* v, const void* seq_lens, void* o, void* workspace, int64_t B, int64_t S, int64_t q_stride_b,
    int64_t q_stride_h, int64_t k_stride_b, int64_t k_stride_l, int64_t k_stride_kv_head, int64_t v_stride_b,
    int64_t v_stride_l, int64_t v_stride_kv_head, int64_t o_stride_b, int64_t o_stride_h,
    cudaStream_t stream);

/* o[T, 6144], gate[T, 6144] -> y[T, 6144] */
int qwen3_8_27b_attn_gate_full(int type, const void* o, const void* gate, void* y, int64_t T,
    int64_t o_stride_t, int64_t gate_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 6144], w[5120, 6144] -> y[T, 5120] */
int qwen3_8_27b_attn_o_proj_full(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], h[T, 5120] -> y[T, 5120] */
int qwen3_8_27b_attn_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[5120] -> y[T, 5120] */
int qwen3_8_27b_post_attn_norm(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[34816, 5120] -> y[T, 34816] */
int qwen3_8_27b_mlp_gate_up(int type, const void* x, const void* w, void* y, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* gu[T, 34816] -> y[T, 17408] */
int qwen3_8_27b_mlp_act(int type, const void* gu, void* y, int64_t T, int64_t gu_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 17408], w[5120, 17408] -> y[T, 5120] */
int qwen3_8_27b_mlp_down(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t w_stride_n_, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], h[T, 5120] -> y[T, 5120] */
int qwen3_8_27b_mlp_residual(int type, const void* x, const void* h, void* y, int64_t T,
    int64_t x_stride_t, int64_t h_stride_t, int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[5120] -> y[T, 5120] */
int qwen3_8_27b_final_norm(int type, const void* x, const void* w, void* y, int64_t T, int64_t x_stride_t,
    int64_t y_stride_t, cudaStream_t stream);

/* x[T, 5120], w[248320, 5120] -> logits[T, 248320] */
int qwen3_8_27b_lm_head(int type, const void* x, const void* w, void* logits, int64_t T,
    int64_t x_stride_t, int64_t w_stride_n_, int64_t logits_stride_t, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
