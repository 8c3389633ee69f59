/* SPDX-License-Identifier: Apache-2.0 */
/* What a machine looks like to a CUDA program: device attributes and cudaDeviceProp in its three layouts.
 *
 * attributes.def has the values, properties.def the layouts. What always holds: cudaDeviceProp_11 is a prefix of
 * cudaDeviceProp_12 (the layout grew in CUDA 12, under a new symbol), and cudaDeviceProp_13 lacks what CUDA 13
 * removed. */
#ifndef FF_DRIVER_PROPERTIES_H
#define FF_DRIVER_PROPERTIES_H

#include <stdbool.h>
#include <stddef.h>

#include "machine/spec/spec.h"

enum { ATTRIBUTE_COMPUTE_MAJOR = 75, ATTRIBUTE_COMPUTE_MINOR = 76 }; /* of device attributes */

#define PROPERTIES_MEMBER(type, field, dimension) type field dimension;
#define PROPERTIES_ABSENT(type, field, dimension)

#define PROPERTIES_11_13 PROPERTIES_MEMBER
#define PROPERTIES_11_12 PROPERTIES_MEMBER
#define PROPERTIES_12_13 PROPERTIES_ABSENT
#define PROPERTIES_12_12 PROPERTIES_ABSENT
#define PROPERTIES_13_13 PROPERTIES_ABSENT
#define X(majors, type, field, dimension, ...) PROPERTIES_##majors(type, field, dimension)
typedef struct cudaDeviceProp_11 { /* cudaGetDeviceProperties of libcudart.so.11.0 and .12 */
#include "driver/properties.def"
} cudaDeviceProp_11;
#undef PROPERTIES_12_13
#undef PROPERTIES_12_12
#define PROPERTIES_12_13 PROPERTIES_MEMBER
#define PROPERTIES_12_12 PROPERTIES_MEMBER
typedef struct cudaDeviceProp_12 { /* cudaGetDeviceProperties_v2 of libcudart.so.12 */
#include "driver/properties.def"
} cudaDeviceProp_12;
#undef PROPERTIES_11_12
#undef PROPERTIES_12_12
#undef PROPERTIES_13_13
#define PROPERTIES_11_12 PROPERTIES_ABSENT
#define PROPERTIES_12_12 PROPERTIES_ABSENT
#define PROPERTIES_13_13 PROPERTIES_MEMBER
typedef struct cudaDeviceProp_13 { /* cudaGetDeviceProperties of libcudart.so.13 */
#include "driver/properties.def"
} cudaDeviceProp_13;
#undef X
#undef PROPERTIES_11_13
#undef PROPERTIES_11_12
#undef PROPERTIES_12_13
#undef PROPERTIES_12_12
#undef PROPERTIES_13_13
#undef PROPERTIES_MEMBER
#undef PROPERTIES_ABSENT

/* The value of a device attribute (cudaDeviceAttr or CUdevice_attribute); false: there is no such number. All devices
 * are the same machine. */
bool properties_attribute(const machine_spec *machine, int device, int attribute, int *value);

/* What each of these atomic operations (cudaAtomicOperation, CUatomicOperation) can do between a device and the host,
 * or two devices: what the attribute HostNativeAtomicSupported says, nothing. false: there is no such operation, or
 * none is asked for. */
bool properties_atomics(const int *operations, unsigned count, unsigned *capabilities);

/* The memory's clock as drivers count it, half the data rate of a pin: dram_clock_mhz, or a multiple where that is a
 * command clock of more than two transfers (GDDR5). Times 2 and the bus it is dram_gbs, within rounding, unless
 * dram_gbs alone was set, or is less, as on GeForce boards, whose memory runs slower under CUDA. */
double properties_memory_clock_mhz(const machine_spec *machine);
uint64_t properties_bus_bits(const machine_spec *machine); /* the machine's, or what dram_gbs needs in whole 32 bits */

/* Fill the whole struct. gpu_memory: bytes that the program sees as the device's. */
void properties_fill_11(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_11 *out);
void properties_fill_12(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_12 *out);
void properties_fill_13(const machine_spec *machine, int device, uint64_t gpu_memory, cudaDeviceProp_13 *out);

/* 16 bytes that identify the device: the same machine's name and number, the same identifier. */
void properties_uuid(const machine_spec *machine, int device, char uuid[16]);

/* "0000:01:00.0" is device 0. The number of the device at such an address, or one without domain and function; one that
 * is not there: a large number; -1: the text is no address. */
void properties_bus_write(int device, char text[16]);
int properties_bus_read(const char *text);

#endif
