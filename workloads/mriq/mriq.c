/* SPDX-License-Identifier: Apache-2.0 */
/* Host side of mriq: random voxels in [0, 1) and random samples of whole and broken frequencies up to 4 a unit. Every 97th voxel is compared with a sum in
 * double precision. Sine and cosine of the GPU are off by up to 2^-20.9 within [-pi, pi] (PTX ISA), and by as much more as rounding the angle, of up to
 * 2 pi x 12, turns it: 2^-17 of each sample's square in all. */
#include "gpu.h"
#include "samples.h"
#include "workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define THREADS 256
#define EVERY 97

extern const char workload_ptx[];

typedef struct image {
  unsigned voxels, samples;
  float *place[3], *frequency[3], *real, *imaginary; /* of voxels, of samples; of each sample */
} image;

static image random_image(unsigned voxels, unsigned samples) {
  workload_random random = {43};
  image m = {.voxels = voxels, .samples = samples};
  for (int i = 0; i < 3; i++) m.place[i] = workload_random_floats(&random, voxels, 0, 1);
  for (int i = 0; i < 3; i++) m.frequency[i] = workload_random_floats(&random, samples, -4, 8);
  m.real = workload_random_floats(&random, samples, -1, 2), m.imaginary = workload_random_floats(&random, samples, -1, 2);
  return m;
}

/* *real, *imaginary: what all samples add up to at a voxel. The largest that a sum can be: the sum of all squares. */
static double sum_on_cpu(const image *m, unsigned voxel, double *real, double *imaginary) {
  double most = 0;
  *real = *imaginary = 0;
  for (unsigned i = 0; i < m->samples; i++) {
    double square = (double)m->real[i] * m->real[i] + (double)m->imaginary[i] * m->imaginary[i], angle = 0;
    for (int d = 0; d < 3; d++) angle += (double)m->frequency[d][i] * m->place[d][voxel];
    angle *= 6.283185307179586476925;
    *real += square * cos(angle), *imaginary += square * sin(angle), most += square;
  }
  return most;
}

static void sum_on_gpu(const image *m, float *real, float *imaginary) {
  unsigned voxels = m->voxels, samples = m->samples;
  size_t bytes = voxels * sizeof(float), sample_bytes = samples * sizeof(float);
  gpu_open(workload_ptx);
  gpu_kernel magnitude = gpu_find_kernel("mriq_magnitude"), add = gpu_find_kernel("mriq_add");
  gpu_pointer constant = gpu_find_variable("mriq_samples"), sample_real = gpu_upload(m->real, sample_bytes),
              sample_imaginary = gpu_upload(m->imaginary, sample_bytes), square = gpu_allocate(sample_bytes);
  gpu_shape each_sample = {gpu_divide_up(samples, THREADS), 1, THREADS, 1}, each_voxel = {gpu_divide_up(voxels, THREADS), 1, THREADS, 1};
  GPU_LAUNCH(magnitude, each_sample, sample_real, sample_imaginary, square, samples);
  float *squares = workload_memory(samples, sizeof *squares), *chunk = workload_memory(4 * SAMPLES_AT_ONCE, sizeof *chunk);
  gpu_copy_to_host(squares, square, sample_bytes);
  gpu_pointer x = gpu_upload(m->place[0], bytes), y = gpu_upload(m->place[1], bytes), z = gpu_upload(m->place[2], bytes), q_real = gpu_allocate(bytes),
              q_imaginary = gpu_allocate(bytes);
  gpu_set_words(q_real, 0, voxels), gpu_set_words(q_imaginary, 0, voxels);
  for (unsigned first = 0; first < samples; first += SAMPLES_AT_ONCE) {
    unsigned count = samples - first < SAMPLES_AT_ONCE ? samples - first : SAMPLES_AT_ONCE;
    for (unsigned i = 0; i < count; i++) {
      for (int d = 0; d < 3; d++) chunk[4 * i + (unsigned)d] = m->frequency[d][first + i];
      chunk[4 * i + 3] = squares[first + i];
    }
    gpu_copy_to_device(constant, chunk, 4 * count * sizeof *chunk);
    GPU_LAUNCH(add, each_voxel, x, y, z, q_real, q_imaginary, voxels, count);
  }
  gpu_copy_to_host(real, q_real, bytes), gpu_copy_to_host(imaginary, q_imaginary, bytes);
  free(squares), free(chunk);
  gpu_free(sample_real), gpu_free(sample_imaginary), gpu_free(square), gpu_free(x), gpu_free(y), gpu_free(z), gpu_free(q_real), gpu_free(q_imaginary);
  gpu_close();
}

int main(int argc, char **argv) {
  workload_argument arguments[] = {{"voxels", 32768, 1, 1 << 24}, {"samples", 256, 1, 1 << 20}};
  workload_arguments(argc, argv, "mriq", "the matrix Q of a magnetic resonance image", arguments, 2);
  image m = random_image((unsigned)arguments[0].value, (unsigned)arguments[1].value);
  float *real = workload_memory(m.voxels, sizeof *real), *imaginary = workload_memory(m.voxels, sizeof *imaginary);
  sum_on_gpu(&m, real, imaginary);
  double worst = 0;
  size_t checked = 0;
  workload_cpu_begins();
  for (unsigned voxel = 0; voxel < m.voxels; voxel += EVERY, checked++) {
    double expected_real, expected_imaginary, most = sum_on_cpu(&m, voxel, &expected_real, &expected_imaginary);
    worst = fmax(worst, workload_error(real[voxel], expected_real, most));
    worst = fmax(worst, workload_error(imaginary[voxel], expected_imaginary, most));
  }
  workload_cpu_ends();
  printf("mriq: %u voxels, %u samples, the first is %.4f + %.4f i\n", m.voxels, m.samples, (double)real[0], (double)imaginary[0]);
  for (int i = 0; i < 3; i++) free(m.place[i]), free(m.frequency[i]);
  free(m.real), free(m.imaginary), free(real), free(imaginary);
  return workload_verdict_error("mriq", 2 * checked, worst, 0x1p-17);
}
