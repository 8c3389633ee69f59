/* SPDX-License-Identifier: Apache-2.0 */
/* What graphs and captures are made of, for engine_graph*.c and engine_capture.c only. All of it is under the engine's
 * lock.
 *
 * Invariants while the lock is free (engine_graph_check.c):
 *   - b is in a.after exactly if a is in b.before, and both are nodes of one graph;
 *   - a graph that was made by a node (a child graph, a body) or by an exec has an owner and dies with it;
 *   - a memory's references are the nodes that have it. */
#ifndef FF_DRIVER_ENGINE_GRAPH_PRIVATE_H
#define FF_DRIVER_ENGINE_GRAPH_PRIVATE_H

#include "driver/engine/engine_graph.h"
#include "driver/engine/engine_internal.h"

#define ENGINE_GRAPH_DEPTH 64u    /* graphs in graphs */
#define ENGINE_GRAPH_BRANCHES 32u /* streams of one graph's own; more branches than that share them */

typedef struct engine_link {
  engine_node *node;
  engine_edge edge;
} engine_link;
typedef struct engine_attribute {
  int id;
  cudaLaunchAttributeValue value;
} engine_attribute;

/* An address range that an alloc node gives out. Its pages are there between the node's run and that of what frees
 * it. */
typedef struct engine_graph_memory {
  uint64_t address, bytes; /* whole granules */
  int device;
  cudaMemAccessDesc access[ENGINE_DEVICES_MAX]; /* of other devices while it is allocated */
  size_t access_count;
  uint32_t references;
  bool allocated;
  uint32_t chunk; /* whose memory is mapped there, in engine_graph_memory.c; 0: none */
  struct engine_graph_memory *next;
} engine_graph_memory;

struct engine_node {
  engine_graph *graph;
  uint64_t id, origin; /* not used again; origin: the id of what it is a clone of, or 0 */
  uint32_t local;      /* its number in the graph, likewise */
  int device;          /* where it runs, if it is a kernel; where its memory is, if it allocates */
  engine_node_params params;
  unsigned char *packed; /* KERNEL: its parameters, and pointers to each */
  void **arguments;
  uint32_t argument_count;
  FF_VEC(engine_link) before;
  FF_VEC(engine_node *) after;
  FF_VEC(engine_attribute) attributes;
  engine_graph_memory *memory; /* ALLOC */
  engine_node *freed_by;       /* ALLOC: the node of the same graph that frees it */
  bool disabled;
  uint32_t index, waiting, branch; /* in its graph's nodes; while sorting; in an exec */
  uint64_t mark;
  bool needs_event;  /* in an exec: another branch waits for it, */
  uint32_t event;    /* by this recording, */
  uint64_t event_ps; /* on the local clock */
};

typedef struct engine_condition {
  uint64_t handle;
  uint32_t value, references;
  bool assign;
  struct engine_condition *next;
} engine_condition;

struct engine_graph {
  int device;                  /* that was current when it was made: its reset takes it */
  uint32_t id, next_local;     /* its number; its next node's */
  FF_VEC(engine_node *) nodes; /* in order of their making */
  engine_node *owner;
  engine_exec *exec;               /* whose copy it is; NULL: the program's */
  FF_VEC(engine_object *) objects; /* once per reference */
  FF_VEC(engine_condition *) conditions;
  FF_VEC(engine_node *) order;     /* in an exec: its nodes, each after what it depends on; */
  uint32_t branches, first_branch; /* without the launching stream's own; the first of the exec's streams */
  uint32_t execs;                  /* that were made of it, are alive, and have memory nodes */
  engine_graph *next;
};

/* Where nodes of another device or context than their branch's run. */
typedef struct engine_detour {
  const engine_stream *branch; /* NULL: it is gone, and any may have the stream */
  engine_stream *stream;
} engine_detour;

struct engine_exec {
  int device;                 /* likewise */
  engine_graph *graph, *from; /* from: with memory nodes, what it was made of; NULL: that is gone */
  uint64_t flags;
  FF_VEC(engine_stream *) streams;
  FF_VEC(engine_detour) detours;
  uint32_t running; /* launches that are under way */
  bool doomed;      /* destroyed meanwhile: it goes when they are over */
  bool orphaned;    /* a reset has taken all that it had: they end where they are */
  bool ended;       /* was launched: what comes after waits for */
  uint32_t end;     /* this recording */
  uint64_t end_ps;
  engine_exec *next;
};

struct engine_object { /* held: those of its references that graphs have */
  void *data;
  cudaHostFn_t destroy;
  uint64_t references, held;
  engine_object *next;
};

typedef struct engine_capture {
  uint64_t id;
  engine_graph *graph;
  bool given; /* the graph is the caller's */
  int mode;
  pthread_t thread;
  int device; /* where it began */
  engine_stream *origin;
  FF_VEC(engine_node *) left; /* the tips of streams that were destroyed meanwhile */
  bool invalid;
  bool again; /* engine_recapture.c: into nodes that are there; then: */
  engine_recapture recapture;
  size_t next_node; /* those before it in the graph have been captured */
  struct engine_capture *next;
} engine_capture;

typedef struct engine_graphs { /* all there is */
  engine_graph *graphs;        /* the program's, nodes' and execs' */
  engine_exec *execs;
  engine_object *objects;
  engine_condition *conditions;
  engine_capture *captures;
  uint64_t next_node, next_capture, next_mark;
  uint32_t next_graph;
} engine_graphs;
extern engine_graphs ff_graphs;

bool engine_graph_live(const engine_graph *graph);
bool engine_exec_live(const engine_exec *exec);
void engine_exec_end(engine_exec *exec);              /* a launch is over, and with the last one what was to go */
bool engine_node_has_device(const engine_node *node); /* does what it does belong to one? */
bool engine_node_live(const engine_node *node);
engine_graph *engine_graph_make(void);
void engine_graph_free(engine_graph *graph);
/* with memory nodes, which share their memory */
engine_graph *engine_graph_copy(const engine_graph *graph, uint32_t depth);
bool engine_graph_has_memory(const engine_graph *graph); /* it, or a graph in it */
cudaError_t engine_graph_add_locked(engine_graph *graph, int device, engine_node *const *before,
                                    const engine_edge *edges, size_t count, engine_node_params *params,
                                    engine_node **node);
/* Checks the parameters and takes them over; those that the node had go. */
cudaError_t engine_node_assign(engine_node *node, const engine_node_params *params);
/* Why one of an exec could not take over the other's, which are of its kind: ENGINE_UPDATE_*; 0: it can. */
int engine_node_change(const engine_node *ours, const engine_node *theirs);
/* would it be taken over? Nothing changes */
cudaError_t engine_node_check(const engine_node *node, const engine_node_params *params);
bool engine_node_depends(const engine_node *node, const engine_node *wanted); /* comes after it, or is it */
bool engine_graph_sort(engine_graph *graph); /* fills `order`; false: there is a cycle */
const char *engine_node_kind_name(engine_node_kind kind);

/* engine_capture.c, engine_recapture.c: the lock is held */
cudaError_t engine_capture_begin_locked(engine_stream *stream, int mode, engine_graph *graph, engine_node *const *tips,
                                        size_t count);
engine_capture *engine_recapture_of(const engine_graph *graph); /* that goes on; NULL: none */
/* As engine_graph_add_locked; the lock is free meanwhile. Where it fails, the capture, if it is still there, is
 * invalid. */
cudaError_t engine_recapture_node(engine_capture *capture, int device, engine_node *const *before, size_t count,
                                  engine_node_params *params, engine_node **node);
bool engine_recapture_whole(const engine_capture *capture); /* no node is left; or it is no such capture */

/* engine_values.c: the lock is held; a list that a node has may run later in memory that is not there yet. */
union engine_value;
cudaError_t engine_values_check_locked(const union engine_value *list, size_t count);
bool engine_value_replaces(const union engine_value *old, const union engine_value *other); /* may it, in an exec? */
bool engine_values_same(const union engine_value *a, const union engine_value *b, size_t count);
/* *there: true for what does not wait */
cudaError_t engine_value_look_locked(const union engine_value *v, bool *there);
cudaError_t engine_value_wait_locked(const union engine_value *v); /* the lock is free meanwhile */
/* nothing for what does not write */
cudaError_t engine_value_write_on(const union engine_value *v, engine_stream *stream);

/* engine_green.c: the lock is held. What is current in this thread or, with a stream, what the stream is of; not given:
 * no green context. */
engine_where engine_where_now(const engine_stream *stream);
bool engine_where_live(const engine_where *where);

/* engine_batch.c: the lock is held */
cudaError_t engine_copies_check_locked(const engine_batch *batch);              /* nothing but the copies */
bool engine_copies_replace(const engine_batch *old, const engine_batch *other); /* may it, in an exec? */
engine_batch engine_copies_keep(const engine_batch *batch);                     /* lists of its own */
void engine_copies_free(engine_batch *batch);                                   /* such ones, or none */
cudaError_t engine_copies_on(const engine_batch *batch, engine_stream *stream); /* as a graph's node */

void engine_graph_hold(engine_graph *graph, engine_object *object); /* one reference more, which is the graph's */
void engine_object_drop(engine_object *object, bool held);          /* one less; held: it was a graph's */
void engine_graph_share(engine_graph *graph, engine_condition *condition); /* likewise */
void engine_condition_drop(engine_condition *condition);

cudaError_t engine_graph_memory_check(const engine_node_params *params); /* of an ALLOC node */
/* reuses what ancestors of the node freed */
engine_graph_memory *engine_graph_memory_make(engine_node *node, const engine_node_params *params, cudaError_t *error);
void engine_graph_memory_release(engine_graph_memory *memory); /* one reference less */
engine_graph_memory *engine_graph_memory_at(uint64_t address);
cudaError_t engine_graph_memory_take(engine_graph_memory *memory, engine_stream *stream); /* what the alloc node does */
/* what frees it does; stream NULL: now */
cudaError_t engine_graph_memory_give(engine_graph_memory *memory, engine_stream *stream);
void engine_graph_memory_references_check(void); /* a memory's references are the nodes that have it */
void engine_graph_memory_clear(int device);      /* all of its goes: a reset */

#endif
