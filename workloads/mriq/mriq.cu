/* SPDX-License-Identifier: Apache-2.0 */
/* The matrix Q of a magnetic resonance image: a thread has a voxel and adds the waves of all samples there. A launch takes as many samples as lie in
 * constant memory, 64 KiB of it. Sine and cosine are the GPU's own, fast ones. */
#include "device.h"

#include "samples.h"

/* Sample i: its frequency in x, y, z, and the square of its magnitude. */
__constant__ float mriq_samples[4 * SAMPLES_AT_ONCE];

extern "C" __global__ void mriq_magnitude(const float *real, const float *imaginary, float *magnitude, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) magnitude[i] = fmaf(real[i], real[i], imaginary[i] * imaginary[i]);
}

/* x, y, z, real, imaginary: of `voxels`; the last two are added to. */
extern "C" __global__ void mriq_add(const float *x, const float *y, const float *z, float *real, float *imaginary, unsigned voxels, unsigned samples) {
  unsigned voxel = blockIdx.x * blockDim.x + threadIdx.x;
  if (voxel >= voxels) return;
  float at_x = x[voxel], at_y = y[voxel], at_z = z[voxel], sum_real = real[voxel], sum_imaginary = imaginary[voxel];
  for (unsigned i = 0; i < samples; i++) {
    const float *sample = mriq_samples + 4 * i;
    float angle = TWO_PI * fmaf(sample[0], at_x, fmaf(sample[1], at_y, sample[2] * at_z));
    sum_real = fmaf(sample[3], cosf(angle), sum_real);
    sum_imaginary = fmaf(sample[3], sinf(angle), sum_imaginary);
  }
  real[voxel] = sum_real, imaginary[voxel] = sum_imaginary;
}
