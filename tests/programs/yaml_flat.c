/* SPDX-License-Identifier: Apache-2.0 */
/* `yaml_flat FILE`: every scalar of a YAML file on a line of its own, behind its path: "runs.steps.0.name<tab>Install".
 * Line ends within are "\n". Status 1 with a message for what is no YAML. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/yaml.h"

static void print(struct fy_node *node, const char *path);

static void print_below(struct fy_node *node, const char *path, const char *name) {
  ff_text below = {0};
  ff_text_add(&below, "%s%s%s", path, *path ? "." : "", name);
  print(node, below.chars);
  free(below.chars);
}

static void print(struct fy_node *node, const char *path) {
  struct fy_node_pair *pair;
  struct fy_node *item;
  void *at = NULL;
  char name[FF_YAML_SCALAR + 1];
  if (fy_node_is_mapping(node)) {
    while ((pair = fy_node_mapping_iterate(node, &at)))
      if (ff_yaml_scalar(fy_node_pair_key(pair), name)) print_below(fy_node_pair_value(pair), path, name);
  } else if (fy_node_is_sequence(node)) {
    for (int i = 0; (item = fy_node_sequence_iterate(node, &at)); i++) {
      snprintf(name, sizeof name, "%d", i);
      print_below(item, path, name);
    }
  } else if (ff_yaml_scalar(node, name)) {
    printf("%s\t", path);
    for (const char *c = name; *c; c++) {
      if (*c == '\n') fputs("\\n", stdout);
      else putchar(*c);
    }
    putchar('\n');
  }
}

int main(int argc, char **argv) {
  char *text;
  size_t size;
  ff_yaml yaml;
  ff_error error;
  if (argc != 2) return 64;
  if (ff_file_read(argv[1], 0, &text, &size, &error) || ff_yaml_open(argv[1], text, size, "file", &yaml, &error)) {
    fprintf(stderr, "%s\n", error.message);
    return 1;
  }
  print(ff_yaml_root(&yaml), "");
  ff_yaml_close(&yaml);
  free(text);
  return 0;
}
