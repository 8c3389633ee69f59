/* SPDX-License-Identifier: Apache-2.0 */
/* Uses a library that has a CUDA runtime inside (inside.c). With the library's path as argument it is loaded when the
 * program runs. */
#include <dlfcn.h>
#include <stdio.h>

#ifdef LINKED
int run_inside(void);
int main(void) { return run_inside(); }
#else
int main(int argc, char **argv) {
  void *library = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW);
  int (*run)(void) = NULL;
  if (library) *(void **)&run = dlsym(library, "run_inside");
  if (!run) fprintf(stderr, "%s\n", dlerror());
  return run ? run() : 2;
}
#endif
