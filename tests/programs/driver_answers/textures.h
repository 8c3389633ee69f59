/* SPDX-License-Identifier: Apache-2.0 */
/* Structures and numbers of arrays and textures, as cuda.h has them. */
typedef struct array_description {
  W width, height, depth;
  int format;
  unsigned channels, flags;
} array_description;
typedef struct resource {
  int type, pad;
  W object;
  int format;
  unsigned channels;
  W size, height, pitch;
  char rest[88];
  unsigned flags;
} resource;
_Static_assert(sizeof(resource) == 144, "CUDA_RESOURCE_DESC");
typedef struct texture {
  int address[3], filter;
  unsigned flags, anisotropy;
  int mipmap_filter;
  float bias, least, most, border[4];
  int reserved[12];
} texture;
_Static_assert(sizeof(texture) == 104, "CUDA_TEXTURE_DESC");
enum { WRAP, CLAMP, MIRROR, BORDER };
enum { INTEGER = 1, NORMALIZED = 2, SRGB = 16, NO_TRILINEAR = 32, SEAMLESS = 64 };
enum { U8 = 1, U16 = 2, U32 = 3, S8 = 8, S16 = 9, S32 = 10, HALF = 16, FLOAT = 32 };

W array_make(W width, W height, W depth, int format, unsigned channels, unsigned flags);
