/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel file needs to be CUDA C without a CUDA toolkit.
 *
 * Under clang (-x cuda -nocudainc -nocudalib --cuda-device-only) this header defines the few words of CUDA C that the
 * workloads use, each by the compiler builtin that becomes the PTX instruction named next to it. Under nvcc it defines
 * nothing: the toolkit's own headers have the same names with the same meaning. So a kernel file may use only what
 * stands here, and every kernel is `extern "C"`, for the host side finds it by its plain name. */
#ifndef WORKLOADS_COMMON_DEVICE_H
#define WORKLOADS_COMMON_DEVICE_H

#ifndef __NVCC__

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))

#define DEVICE static __device__ __forceinline__

/* threadIdx, blockIdx, blockDim, gridDim: %tid, %ctaid, %ntid, %nctaid. Components that are not used cost nothing. */
struct workload_index {
  unsigned x, y, z;
};
#define WORKLOAD_INDEX(sreg)                                                                                           \
  (workload_index{(unsigned)__nvvm_read_ptx_sreg_##sreg##_x(), (unsigned)__nvvm_read_ptx_sreg_##sreg##_y(),            \
                  (unsigned)__nvvm_read_ptx_sreg_##sreg##_z()})
#define threadIdx WORKLOAD_INDEX(tid)
#define blockIdx WORKLOAD_INDEX(ctaid)
#define blockDim WORKLOAD_INDEX(ntid)
#define gridDim WORKLOAD_INDEX(nctaid)

/* bar.sync, bar.warp.sync, membar.gl. Not by clang's builtins: LLVM may move loads of a __shared__ variable across them
 * when the variable's address does not escape; it moves nothing across assembly that touches memory. */
DEVICE void workload_syncthreads() { asm volatile("bar.sync 0;" ::: "memory"); }
#define __syncthreads workload_syncthreads
DEVICE void __syncwarp() { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
DEVICE void __threadfence() { asm volatile("membar.gl;" ::: "memory"); }

/* atom.add, atom.cas, atom.exch, atom.max */
DEVICE int atomicAdd(int *at, int value) { return __nvvm_atom_add_gen_i(at, value); }
DEVICE unsigned atomicAdd(unsigned *at, unsigned value) {
  return (unsigned)__nvvm_atom_add_gen_i((int *)at, (int)value);
}
DEVICE unsigned long long atomicAdd(unsigned long long *at, unsigned long long value) {
  return (unsigned long long)__nvvm_atom_add_gen_ll((long long *)at, (long long)value);
}
DEVICE int atomicCAS(int *at, int compare, int value) { return __nvvm_atom_cas_gen_i(at, compare, value); }
DEVICE int atomicMax(int *at, int value) { return __nvvm_atom_max_gen_i(at, value); }

/* shfl.sync.down, .up, .bfly, .idx over the whole warp; the last argument of the builtin is "segment mask | clamp". */
DEVICE int __shfl_down_sync(unsigned lanes, int value, int delta) {
  return __nvvm_shfl_sync_down_i32(lanes, value, delta, 31);
}
DEVICE unsigned __shfl_down_sync(unsigned lanes, unsigned value, int delta) {
  return (unsigned)__nvvm_shfl_sync_down_i32(lanes, (int)value, delta, 31);
}
DEVICE float __shfl_down_sync(unsigned lanes, float value, int delta) {
  return __nvvm_shfl_sync_down_f32(lanes, value, delta, 31);
}
DEVICE unsigned __shfl_up_sync(unsigned lanes, unsigned value, int delta) {
  return (unsigned)__nvvm_shfl_sync_up_i32(lanes, (int)value, delta, 0);
}
DEVICE float __shfl_xor_sync(unsigned lanes, float value, int bits) {
  return __nvvm_shfl_sync_bfly_f32(lanes, value, bits, 31);
}
DEVICE unsigned __shfl_sync(unsigned lanes, unsigned value, int from) {
  return (unsigned)__nvvm_shfl_sync_idx_i32(lanes, (int)value, from, 31);
}
DEVICE unsigned __ballot_sync(unsigned lanes, bool yes) { return __nvvm_vote_ballot_sync(lanes, yes); }

/* One rounding each, whatever the compiler's contraction settings: fma.rn, mul.rn, sqrt.rn; then rsqrt.approx. The
 * product is assembly: LLVM makes the builtin for it a plain product, and that one part of a fused multiply-add. */
DEVICE float fmaf(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
DEVICE float __fmul_rn(float a, float b) {
  float product;
  asm("mul.rn.f32 %0, %1, %2;" : "=f"(product) : "f"(a), "f"(b));
  return product;
}
DEVICE float sqrtf(float a) { return __nvvm_sqrt_rn_f(a); }
DEVICE float rsqrtf(float a) { return __nvvm_rsqrt_approx_f(a); }
/* sin.approx, cos.approx */
DEVICE float sinf(float a) { return __nvvm_sin_approx_f(a); }
DEVICE float cosf(float a) { return __nvvm_cos_approx_f(a); }
DEVICE float fabsf(float a) { return __builtin_fabsf(a); }
DEVICE int __popc(unsigned a) { return __builtin_popcount(a); }
DEVICE int __clz(int a) { return a ? __builtin_clz((unsigned)a) : 32; }

#undef DEVICE

#endif /* clang without a toolkit */

#define ALL_LANES 0xffffffffu
#define WARP_LANES 32u

#endif
