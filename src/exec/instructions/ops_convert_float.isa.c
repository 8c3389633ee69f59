/* SPDX-License-Identifier: Apache-2.0 */
/* Handlers of cvt from and to floating point; the forms stand in ops_convert_float.def. */
#include "exec/instructions/ops_convert.h"
#include "exec/instructions/ops_half.h"

/* --- Float to integer. The lane is already integral, or is to be cut (.rzi): the casts cut. --- */

OPS_INLINE int32_t s32_of_f32(float x) {
  return x >= 0x1p31f ? INT32_MAX : x >= -0x1p31f ? (int32_t)x : x == x ? INT32_MIN : 0;
}
OPS_INLINE uint32_t u32_of_f32(float x) {
  float low = x >= 0x1p31f ? x - 0x1p31f : x;
  uint32_t r = (uint32_t)(int32_t)(low > 0.0f && low < 0x1p31f ? low : 0.0f) + (x >= 0x1p31f ? 0x80000000u : 0);
  return x >= 0x1p32f ? UINT32_MAX : r;
}
OPS_INLINE int32_t s32_of_f64(double x) {
  return x >= 0x1p31 ? INT32_MAX : x > -0x1p31 - 1 ? (int32_t)x : INT32_MIN; /* NaN as well */
}
OPS_INLINE uint32_t u32_of_f64(double x) {
  double low = x >= 0x1p31 ? x - 0x1p31 : x;
  uint32_t r = (uint32_t)(int32_t)(low > 0.0 && low < 0x1p31 ? low : 0.0) + (x >= 0x1p31 ? 0x80000000u : 0);
  return x >= 0x1p32 ? UINT32_MAX : x == x ? r : 0x80000000u;
}
OPS_INLINE int64_t s64_of_f64(double x) { return x >= 0x1p63 ? INT64_MAX : x >= -0x1p63 ? (int64_t)x : INT64_MIN; }
OPS_INLINE uint64_t u64_of_f64(double x) {
  double low = x >= 0x1p63 ? x - 0x1p63 : x;
  uint64_t r = (uint64_t)(int64_t)(low > 0.0 && low < 0x1p63 ? low : 0.0) + (x >= 0x1p63 ? UINT64_C(1) << 63 : 0);
  return x >= 0x1p64 ? UINT64_MAX : x == x ? r : UINT64_C(1) << 63;
}
OPS_INLINE int64_t s64_of_f32(float x) { return s64_of_f64(x); }
OPS_INLINE uint64_t u64_of_f32(float x) { return u64_of_f64(x); }

/* 8 and 16 bits: clamp the 32-bit result; a NaN from f64 is the top bit of the narrow type. */
OPS_INLINE int32_t clamp32(int32_t x, int32_t low, int32_t high) { return x < low ? low : x > high ? high : x; }
OPS_INLINE int32_t narrow_of_f32(float x, int32_t low, int32_t high) { return clamp32(s32_of_f32(x), low, high); }
OPS_INLINE int32_t narrow_of_f64(double x, int32_t low, int32_t high) {
  int32_t r = clamp32(s32_of_f64(x), low, high);
  return x == x ? r : low ? low : (high >> 1) + 1;
}

/* To an integral value in the processor's rounding mode. */
OPS_INLINE float integral_f32(float x) {
  float c = __builtin_copysignf(0x1p23f, x), r = (x + c) - c;
  return __builtin_fabsf(x) < 0x1p23f ? r : x;
}
OPS_INLINE double integral_f64(double x) {
  double c = __builtin_copysign(0x1p52, x), r = (x + c) - c;
  return __builtin_fabs(x) < 0x1p52 ? r : x;
}

#define FLOAT_TO_INT_1(ftz, S, K, I, at, fn, D, cut, other) \
  FN1(fn##_rzi_##K, D, K, cut)                              \
  FNR1(fn##_dir_##K, D, K, other)                           \
  FLOAT_TO_INT_ROWS("cvt.", ftz "." I "." S at, fn, D, K)
#define FLOAT_TO_INT_ROWS(cvt, rest, fn, D, K)     \
  ROW1(cvt "rzi" rest, fn##_rzi_##K, 0, D, K)      \
  ROW1(cvt "rni" rest, fn##_dir_##K, OPS_RN, D, K) \
  ROW1(cvt "rmi" rest, fn##_dir_##K, OPS_RM, D, K) ROW1(cvt "rpi" rest, fn##_dir_##K, OPS_RP, D, K)
#define FLOAT_TO_NARROW(ftz, S, K, L, I, at, fn, D, low, high) \
  FLOAT_TO_INT_1(ftz, S, K, I, at, fn, D, narrow_of_##L(a, low, high), narrow_of_##L(integral_##L(a), low, high))
#define FLOAT_TO_WIDE(ftz, S, K, L, I, fn, D) \
  FLOAT_TO_INT_1(ftz, S, K, #I, "", fn, D, I##_of_##L(a), I##_of_##L(integral_##L(a)))
#define FLOAT_TO_INT(ftz, S, K, L)                                                  \
  FLOAT_TO_NARROW(ftz, S, K, L, "u8", "", cvt_u8, t8u, 0, 0xff)                     \
  FLOAT_TO_NARROW(ftz, S, K, L, "s8", "", cvt_s8, t8s_16, -0x80, 0x7f)              \
  FLOAT_TO_NARROW(ftz, S, K, L, "s8", "@32", cvt_s8_32, t8s_32, -0x80, 0x7f)        \
  FLOAT_TO_NARROW(ftz, S, K, L, "u16", "", cvt_u16, t16u, 0, 0xffff)                \
  FLOAT_TO_NARROW(ftz, S, K, L, "s16", "", cvt_s16, t16u, -0x8000, 0x7fff)          \
  FLOAT_TO_NARROW(ftz, S, K, L, "s16", "@32", cvt_s16_32, t16s_32, -0x8000, 0x7fff) \
  FLOAT_TO_INT_ROWS("cvt.", ftz ".u8." S "@32", cvt_u8, t8u, K)                     \
  FLOAT_TO_INT_ROWS("cvt.", ftz ".u16." S "@32", cvt_u16, t16u, K)                  \
  FLOAT_TO_WIDE(ftz, S, K, L, u32, cvt_u32, t32)                                    \
  FLOAT_TO_WIDE(ftz, S, K, L, s32, cvt_s32, t32)                                    \
  FLOAT_TO_WIDE(ftz, S, K, L, u64, cvt_u64, t64) FLOAT_TO_WIDE(ftz, S, K, L, s64, cvt_s64, t64)

/* --- Integer to float. 64-bit integers go to 16-bit formats by way of a double that was rounded to odd. --- */

OPS_INLINE uint64_t odd53(uint64_t m) { return m >> 53 ? (m & ~UINT64_C(0x7ff)) | ((m & 0x7ff) ? 0x800 : 0) : m; }
OPS_INLINE float odd_of_u64(uint64_t x) { return ops_odd32((double)odd53(x)); }
OPS_INLINE float odd_of_s64(int64_t x) {
  float r = odd_of_u64(x < 0 ? -(uint64_t)x : (uint64_t)x);
  return x < 0 ? -r : r;
}
OPS_INLINE float odd_of_exact(double x) { return ops_odd32(x); }

/* clang converts unsigned integers by adding and subtracting magic numbers, as if all rounding were to nearest: rounded
 * downwards, that makes 0 a -0. The empty instruction keeps it from finding that the question changes nothing. */
#ifdef __clang__
#define DIRECTED(type)          \
  (a == 0 ? 0 : (type)({        \
    __auto_type hidden = a;     \
    __asm__("" : "+r"(hidden)); \
    hidden;                     \
  }))
#else
#define DIRECTED(type) ((type)a)
#endif

#define INT_TO_HALF(S, K, E, mode)                                                         \
  OP1("cvt." #mode ".f16." S, cvt_f16_##mode##_##K, f16, K, ops_f16_##mode(odd_of_##E(a))) \
  OP1("cvt." #mode ".bf16." S, cvt_bf16_##mode##_##K, bf16, K, ops_bf16_##mode(odd_of_##E(a)))
#define INT_TO_FLOAT(S, K, E)                                                           \
  OP1("cvt.rn.f32." S " cvt.rn.ftz.f32." S, cvt_f32_rn_##K, f32, K, (float)a)           \
  OP1("cvt.rn.sat.f32." S " cvt.rn.ftz.sat.f32." S, cvt_f32s_rn_##K, f32s, K, (float)a) \
  FNR1(cvt_f32_dir_##K, f32, K, DIRECTED(float))                                        \
  ROW1("cvt.rz.f32." S " cvt.rz.ftz.f32." S, cvt_f32_dir_##K, OPS_RZ, f32, K)           \
  ROW1("cvt.rm.f32." S " cvt.rm.ftz.f32." S, cvt_f32_dir_##K, OPS_RM, f32, K)           \
  ROW1("cvt.rp.f32." S " cvt.rp.ftz.f32." S, cvt_f32_dir_##K, OPS_RP, f32, K)           \
  OP1("cvt.rn.f64." S, cvt_f64_rn_##K, f64, K, (double)a)                               \
  FNR1(cvt_f64_dir_##K, f64, K, DIRECTED(double))                                       \
  ROW1("cvt.rz.f64." S, cvt_f64_dir_##K, OPS_RZ, f64, K)                                \
  ROW1("cvt.rm.f64." S, cvt_f64_dir_##K, OPS_RM, f64, K)                                \
  ROW1("cvt.rp.f64." S, cvt_f64_dir_##K, OPS_RP, f64, K)                                \
  INT_TO_HALF(S, K, E, rn) INT_TO_HALF(S, K, E, rz) INT_TO_HALF(S, K, E, rm) INT_TO_HALF(S, K, E, rp)

/* --- Float to float. --- */

#define F64_TO_F32_1(D, text)                                       \
  OP1("cvt.rn" text ".f32.f64", cvt_rn_##D##_f64, D, f64, (float)a) \
  FNR1(cvt_dir_##D##_f64, D, f64, (float)a)                         \
  ROW1("cvt.rz" text ".f32.f64", cvt_dir_##D##_f64, OPS_RZ, D, f64) \
  ROW1("cvt.rm" text ".f32.f64", cvt_dir_##D##_f64, OPS_RM, D, f64) \
  ROW1("cvt.rp" text ".f32.f64", cvt_dir_##D##_f64, OPS_RP, D, f64)
#define F64_TO_F32 \
  F64_TO_F32_1(f32c, "") F64_TO_F32_1(f32z, ".ftz") F64_TO_F32_1(f32s, ".sat") F64_TO_F32_1(f32zs, ".ftz.sat")

#define TO_F32(op, S, K, Z, expr, fn)                 \
  OP1(op ".f32." S, cvt_f32c_##fn, f32c, K, expr)     \
  OP1(op ".ftz.f32." S, cvt_f32z_##fn, f32z, Z, expr) \
  OP1(op ".sat.f32." S, cvt_f32s_##fn, f32s, K, expr) OP1(op ".ftz.sat.f32." S, cvt_f32zs_##fn, f32zs, Z, expr)
#define TO_F64(op, S, K, expr, fn)                           \
  OP1(op ".f64." S, cvt_f64_##fn, f64, K, ops_nan1(expr, a)) \
  OP1(op ".sat.f64." S, cvt_f64s_##fn, f64, K, ops_sat64(expr))

#define TO_HALF_1(mode, ftz, S, K, expr)                                                                               \
  OP1("cvt." #mode ftz ".f16." S, f16_##mode##_of_##K, f16, K, ops_f16_##mode(expr))                                   \
  OP1("cvt." #mode ftz ".sat.f16." S, f16_##mode##_sat_of_##K, f16, K, ops_f16_sat(ops_f16_##mode(expr)))              \
  OP1("cvt." #mode ftz ".relu.f16." S, f16_##mode##_relu_of_##K, f16, K, ops_relu16(ops_f16_##mode(expr)))             \
  OP1("cvt." #mode ftz ".satfinite.f16." S, f16_##mode##_fin_of_##K, f16, K, ops_f16_finite(ops_f16_##mode(expr)))     \
  OP1("cvt." #mode ftz ".relu.satfinite.f16." S " cvt." #mode ftz ".satfinite.relu.f16." S, f16_##mode##_rf_of_##K,    \
      f16, K, ops_relu16(ops_f16_finite(ops_f16_##mode(expr))))                                                        \
  OP1("cvt." #mode ftz ".bf16." S, bf16_##mode##_of_##K, bf16, K, ops_bf16_##mode(expr))                               \
  OP1("cvt." #mode ftz ".relu.bf16." S, bf16_##mode##_relu_of_##K, bf16, K, ops_relu16(ops_bf16_##mode(expr)))         \
  OP1("cvt." #mode ftz ".satfinite.bf16." S, bf16_##mode##_fin_of_##K, bf16, K,                                        \
      ops_bf16_finite(ops_bf16_##mode(expr)))                                                                          \
  OP1("cvt." #mode ftz ".relu.satfinite.bf16." S " cvt." #mode ftz ".satfinite.relu.bf16." S, bf16_##mode##_rf_of_##K, \
      bf16, K, ops_relu16(ops_bf16_finite(ops_bf16_##mode(expr))))
#define TO_HALF(ftz, S, K, expr) \
  TO_HALF_1(rn, ftz, S, K, expr) \
  TO_HALF_1(rz, ftz, S, K, expr) TO_HALF_1(rm, ftz, S, K, expr) TO_HALF_1(rp, ftz, S, K, expr)
/* Both have 16 bits, so PTX does not demand a rounding; Triton writes none. The manual leaves open which it is then. */
#define BF16_TO_F16                                                \
  OP1("cvt.f16.bf16", f16_of_bf16, f16, h16b, ops_f16_rn(a))       \
  OP1("cvt.rn.f16.bf16", f16_rn_of_bf16, f16, h16b, ops_f16_rn(a)) \
  OP1("cvt.rz.f16.bf16", f16_rz_of_bf16, f16, h16b, ops_f16_rz(a)) \
  OP1("cvt.rm.f16.bf16", f16_rm_of_bf16, f16, h16b, ops_f16_rm(a)) \
  OP1("cvt.rp.f16.bf16", f16_rp_of_bf16, f16, h16b, ops_f16_rp(a))
#define F16_TO_BF16                                                 \
  OP1("cvt.bf16.f16", bf16_of_f16, bf16, h16, ops_bf16_rn(a))       \
  OP1("cvt.rn.bf16.f16", bf16_rn_of_f16, bf16, h16, ops_bf16_rn(a)) \
  OP1("cvt.rz.bf16.f16", bf16_rz_of_f16, bf16, h16, ops_bf16_rz(a)) \
  OP1("cvt.rm.bf16.f16", bf16_rm_of_f16, bf16, h16, ops_bf16_rm(a)) \
  OP1("cvt.rp.bf16.f16", bf16_rp_of_f16, bf16, h16, ops_bf16_rp(a))
#define HALF_TO_HALF(op, fn, expr)                                                  \
  OP1(op ".f16.f16", cvt_f16_##fn, f16, h16, ops_f16_rz(expr))                      \
  OP1(op ".sat.f16.f16", cvt_sat_f16_##fn, f16, h16, ops_f16_sat(ops_f16_rz(expr))) \
  OP1(op ".bf16.bf16", cvt_bf16_##fn, bf16, h16b, ops_bf16_rz(expr))

#define PACK_1(mode, text, fn, post, H)                                              \
  OP2("cvt." #mode text "." #H "x2.f32", cvt_##H##x2_##mode##_##fn, H##x2, f32, f32, \
      post(ops_##H##_##mode(a), ops_##H) << 16 | post(ops_##H##_##mode(b), ops_##H))
#define PACK_none(x, H) (x)
#define PACK_relu(x, H) ops_relu16(x)
#define PACK_finite(x, H) H##_finite(x)
#define PACK_both(x, H) ops_relu16(H##_finite(x))
#define PACK_2(mode, H)                     \
  PACK_1(mode, "", none, PACK_none, H)      \
  PACK_1(mode, ".relu", relu, PACK_relu, H) \
  PACK_1(mode, ".satfinite", finite, PACK_finite, H) PACK_1(mode, ".relu.satfinite", both, PACK_both, H)
#define PACK_HALVES PACK_2(rn, f16) PACK_2(rz, f16) PACK_2(rn, bf16) PACK_2(rz, bf16)

OPS_INLINE uint32_t tf32_rna(uint32_t bits) {
  uint32_t m = bits & 0x7fffffffu, r = (m + 0x1000u) & ~0x1fffu;
  return m > 0x7f800000u ? 0x7fffffffu : m == 0x7f800000u ? bits : r | (bits & 0x80000000u);
}
OPS_INLINE uint32_t tf32_rn(uint32_t bits) {
  uint32_t m = bits & 0x7fffffffu, r = (m + 0xfffu + (m >> 13 & 1u)) & ~0x1fffu;
  return m > 0x7f800000u ? 0x7fffffffu : m == 0x7f800000u ? bits : r | (bits & 0x80000000u);
}
OPS_INLINE uint32_t tf32_rz(uint32_t bits) {
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffffffu : bits & ~0x1fffu;
}
OPS_INLINE uint32_t tf32_finite(uint32_t bits) { return (bits & 0x7fffffffu) == 0x7f800000u ? bits - 0x2000u : bits; }
OPS_INLINE uint32_t tf32_relu(uint32_t bits) { return bits & 0x80000000u ? 0 : bits; }
#define TO_TF32_1(mode)                                                                                               \
  OP1("cvt." #mode ".tf32.f32", cvt_tf32_##mode, u32, f32b, tf32_##mode(a))                                           \
  OP1("cvt." #mode ".satfinite.tf32.f32", cvt_tf32_##mode##_fin, u32, f32b, tf32_finite(tf32_##mode(a)))              \
  OP1("cvt." #mode ".relu.tf32.f32", cvt_tf32_##mode##_relu, u32, f32b, tf32_relu(tf32_##mode(a)))                    \
  OP1("cvt." #mode ".satfinite.relu.tf32.f32 cvt." #mode ".relu.satfinite.tf32.f32", cvt_tf32_##mode##_rf, u32, f32b, \
      tf32_relu(tf32_finite(tf32_##mode(a))))
#define TO_TF32 TO_TF32_1(rna) TO_TF32_1(rn) TO_TF32_1(rz)

#define OPS_MASKED_AFTER
#define OPS_DEF "exec/instructions/ops_convert_float.def"
#define OPS_TABLE ops_convert_float
#include "exec/instructions/ops_expand.h"
