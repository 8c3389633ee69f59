/* SPDX-License-Identifier: Apache-2.0 */
/* A library to link the fixtures with, in the place of a CUDA runtime that need not be there. */
void **__cudaRegisterFatBinary(void *binary);
__attribute__((visibility("default"))) void **__cudaRegisterFatBinary(void *binary) { return binary; }
