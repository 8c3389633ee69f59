/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs, captures and user objects of the virtual GPU, for libcudart and libcuda (CUDA Runtime API, "Graph
 * Management"; Driver API, likewise).
 *
 *     engine_graph_create, engine_capture_begin..end        engine_graph_instantiate         engine_exec_launch
 *     ---------------------------------------------> graph ---------------------------> exec -------------------> operations
 *
 * A *node* says one operation in the engine's own words (engine_launch, engine_copy, ...); an *edge* that it comes
 * after another. An *exec* has a copy of its graph, so neither sees what happens to the other. A launch puts the nodes,
 * in an order that keeps the edges, on the launching stream and on streams of the exec's own, one per branch that may
 * overlap with others; the host pays for one call (TRACE_OP_BATCH).
 *
 * Handles that are none: cudaErrorInvalidValue. Arrays that are filled: NULL asks for the count; else as many as *count
 * says are given, further places become NULL, and *count is the number there are. */
#ifndef FF_DRIVER_ENGINE_GRAPH_H
#define FF_DRIVER_ENGINE_GRAPH_H

#include "driver/copy_attributes.h"
#include "driver/engine/engine.h"

typedef struct engine_graph engine_graph;
typedef struct engine_node engine_node;
typedef struct engine_exec engine_exec;
typedef struct engine_object engine_object;

typedef enum engine_node_kind { /* CUgraphNodeType, cudaGraphNodeType */
                                ENGINE_NODE_KERNEL = 0,
                                ENGINE_NODE_COPY = 1,
                                ENGINE_NODE_SET = 2,
                                ENGINE_NODE_HOST = 3,
                                ENGINE_NODE_GRAPH = 4,
                                ENGINE_NODE_EMPTY = 5,
                                ENGINE_NODE_WAIT = 6,
                                ENGINE_NODE_RECORD = 7,
                                ENGINE_NODE_ALLOC = 10,
                                ENGINE_NODE_FREE = 11,
                                ENGINE_NODE_VALUES = 12, /* CU_GRAPH_NODE_TYPE_BATCH_MEM_OP */
                                ENGINE_NODE_CONDITIONAL = 13,
                                ENGINE_NODE_BATCH = 14,
} engine_node_kind;

typedef struct engine_edge {
  unsigned char from_port, to_port, type, reserved[5];
} engine_edge; /* cudaGraphEdgeData */

/* `count` copies of sizes[i] bytes from from[i] to to[i]; those from indices[k] on are of kind attributes[k]
 * (copy_attributes.h). */
typedef struct engine_batch {
  const uint64_t *to, *from;
  const size_t *sizes, *indices;
  const cudaMemcpyAttributes *attributes;
  size_t count, kinds;
} engine_batch;

/* The context that a node is to run in. Not given: on the device that is current when the node is added, on the SMs of
 * the green context that is current then, or, without one, of the stream that the graph is launched in. */
typedef struct engine_where {
  bool given;
  int device;
  engine_green *green; /* NULL: all SMs of the device */
  uint64_t green_id;   /* its own, as another may get its address; 0: none. Set by engine_where_green */
} engine_where;
/* cudaErrorContextIsDestroyed: it is none. */
ENGINE_API cudaError_t engine_where_green(engine_green *green, engine_where *where);

typedef struct engine_node_params { /* only what the kind names */
  engine_node_kind kind;
  engine_where where;   /* KERNEL, COPY, SET, BATCH; changed parameters that do not give it leave it */
  engine_launch launch; /* KERNEL; its arguments are copied, its stream is not looked at */
  engine_copy copy;     /* COPY */
  engine_set set;       /* SET */
  struct {
    cudaHostFn_t function;
    void *data;
  } host;
  engine_graph *graph; /* GRAPH: is cloned; afterwards, the clone */
  cudaEvent_t event;   /* WAIT, RECORD */
  struct {             /* ALLOC: the address is given by engine_graph_add; FREE: only the address */
    uint64_t address, bytes;
    int device;
    const cudaMemAccessDesc *access; /* of other devices; the list is copied, and the copy is the node's */
    size_t access_count;
  } memory;
  struct { /* VALUES: the list is copied, and the copy is the node's */
    const union engine_value *list;
    size_t count;
  } values;
  engine_batch batch; /* BATCH: the lists are copied, and the copies are the node's */
  /* bodies are made by engine_graph_add */
  struct {
    uint64_t handle;
    uint32_t type, count;
    engine_graph **bodies;
  } conditional;
} engine_node_params;

enum { ENGINE_CONDITIONAL_IF = 0, ENGINE_CONDITIONAL_WHILE = 1, ENGINE_CONDITIONAL_SWITCH = 2 };

/* ---- graphs ---- */

ENGINE_API cudaError_t engine_graph_create(engine_graph **graph);
ENGINE_API cudaError_t engine_graph_destroy(engine_graph *graph); /* not one that is a node's */
/* cudaErrorNotSupported: it has memory nodes */
ENGINE_API cudaError_t engine_graph_clone(engine_graph *graph, engine_graph **clone);
/* `edges` may be NULL: plain ones. What cannot be launched is refused here, as engine_launch_run would. */
ENGINE_API cudaError_t engine_graph_add(engine_graph *graph, engine_node *const *before, const engine_edge *edges,
                                        size_t count, engine_node_params *params, engine_node **node);
ENGINE_API cudaError_t engine_node_destroy(engine_node *node); /* no memory node, nor an edge of a graph with such */
/* What params point to belongs to the node. where.device is the node's also where no context is given. */
ENGINE_API cudaError_t engine_node_get(engine_node *node, engine_node_params *params);
/* of the same kind, not of memory */
ENGINE_API cudaError_t engine_node_set(engine_node *node, const engine_node_params *params);
ENGINE_API cudaError_t engine_node_in_clone(engine_node *original, engine_graph *clone, engine_node **node);
ENGINE_API cudaError_t engine_graph_nodes(engine_graph *graph, bool roots, engine_node **nodes, size_t *count);
ENGINE_API cudaError_t engine_graph_edges(engine_graph *graph, engine_node **from, engine_node **to, engine_edge *edges,
                                          size_t *count);
ENGINE_API cudaError_t engine_node_neighbours(engine_node *node, bool after, engine_node **nodes, engine_edge *edges,
                                              size_t *count);
/* All or none. cudaErrorInvalidValue: there already, not there, or of a node with itself. */
ENGINE_API cudaError_t engine_graph_connect(engine_graph *graph, engine_node *const *from, engine_node *const *to,
                                            const engine_edge *edges, size_t count);
ENGINE_API cudaError_t engine_graph_disconnect(engine_graph *graph, engine_node *const *from, engine_node *const *to,
                                               size_t count);
ENGINE_API cudaError_t engine_graph_dot(engine_graph *graph, const char *path, unsigned flags);
/* Where a node is. Numbers count from 1 for graphs and from 0 for the nodes of each, and are not used again. */
typedef struct engine_node_place {
  engine_graph *graph;
  uint32_t local; /* in its graph, */
  uint64_t id;    /* in the process */
} engine_node_place;
ENGINE_API cudaError_t engine_node_where(engine_node *node, engine_node_place *place);
ENGINE_API cudaError_t engine_graph_id(engine_graph *graph, unsigned *id);
ENGINE_API cudaError_t engine_exec_id(engine_exec *exec, unsigned *id); /* of no graph of the program's */
/* Attributes of kernel nodes, by cudaLaunchAttributeID. Those not set are zeros. */
ENGINE_API cudaError_t engine_node_attribute(engine_node *node, int attribute, cudaLaunchAttributeValue *value);
ENGINE_API cudaError_t engine_node_set_attribute(engine_node *node, int attribute,
                                                 const cudaLaunchAttributeValue *value);
ENGINE_API cudaError_t engine_node_copy_attributes(engine_node *to, engine_node *from);
/* The handle is the address of the word that device code sets. `assign`: it is `value` again whenever the graph is
 * launched. */
ENGINE_API cudaError_t engine_conditional_create(engine_graph *graph, uint32_t value, bool assign, uint64_t *handle);

/* ---- graphs that can be launched ---- */

enum { ENGINE_EXEC_AUTO_FREE = 1, ENGINE_EXEC_UPLOAD = 2, ENGINE_EXEC_DEVICE_LAUNCH = 4, ENGINE_EXEC_PRIORITIES = 8 };
enum {
  ENGINE_INSTANTIATE_SUCCESS,
  ENGINE_INSTANTIATE_ERROR,
  ENGINE_INSTANTIATE_STRUCTURE,
  ENGINE_INSTANTIATE_UNSUPPORTED,
  ENGINE_INSTANTIATE_DEVICES /* nodes of several devices in a graph that kernels are to launch */
};
enum {
  ENGINE_UPDATE_SUCCESS,
  ENGINE_UPDATE_ERROR,
  ENGINE_UPDATE_TOPOLOGY,
  ENGINE_UPDATE_KIND,
  ENGINE_UPDATE_FUNCTION,
  ENGINE_UPDATE_PARAMETERS,
  ENGINE_UPDATE_UNSUPPORTED
};
/* why not; either may be NULL */
typedef struct engine_verdict {
  int result;
  engine_node *node, *from;
} engine_verdict;

ENGINE_API cudaError_t engine_graph_instantiate(engine_graph *graph, uint64_t flags, engine_exec **exec,
                                                engine_verdict *verdict);
ENGINE_API cudaError_t engine_exec_destroy(engine_exec *exec);
ENGINE_API cudaError_t engine_exec_flags(engine_exec *exec, uint64_t *flags);
ENGINE_API cudaError_t engine_exec_launch(engine_exec *exec, cudaStream_t stream);
ENGINE_API cudaError_t engine_exec_upload(engine_exec *exec, cudaStream_t stream);
/* `node` is of the graph that was instantiated. */
ENGINE_API cudaError_t engine_exec_set(engine_exec *exec, engine_node *node, const engine_node_params *params);
/* kernels, copies and sets only */
ENGINE_API cudaError_t engine_exec_enable(engine_exec *exec, engine_node *node, bool enabled);
ENGINE_API cudaError_t engine_exec_enabled(engine_exec *exec, engine_node *node, bool *enabled);
/* cudaErrorGraphExecUpdateFailure: nothing was changed; *verdict says why. */
ENGINE_API cudaError_t engine_exec_update(engine_exec *exec, engine_graph *graph, engine_verdict *verdict);

/* ---- captures ---- */

enum { ENGINE_CAPTURE_GLOBAL, ENGINE_CAPTURE_THREAD_LOCAL, ENGINE_CAPTURE_RELAXED };
enum { ENGINE_CAPTURE_NONE, ENGINE_CAPTURE_ACTIVE, ENGINE_CAPTURE_INVALIDATED };
typedef struct engine_capture_info {
  int status;
  uint64_t id;
  engine_graph *graph;
  engine_node *const *tips; /* what the next node comes after; until the next call that changes the stream's capture */
  const engine_edge *edges;
  size_t count;
} engine_capture_info;

/* `graph` NULL: into a new one. */
ENGINE_API cudaError_t engine_capture_begin(cudaStream_t stream, int mode, engine_graph *graph,
                                            engine_node *const *tips, size_t count);
/* Into the nodes that the graph has, in the order of their making (engine_recapture.c). `tell`: for each that gets
 * other parameters; captured: a node that has them, and is gone afterwards; false: it shall not. NULL: they always
 * may. */
enum { ENGINE_RECAPTURE_ELIGIBLE, ENGINE_RECAPTURE_INELIGIBLE }; /* may an exec's node get them, too? */
typedef struct engine_recapture {
  bool (*tell)(const struct engine_recapture *hook, engine_node *node, engine_node *captured, int eligible);
  void (*function)(void); /* tell's */
  void *data;
} engine_recapture;
ENGINE_API cudaError_t engine_recapture_begin(cudaStream_t stream, int mode, engine_graph *graph,
                                              const engine_recapture *hook);
/* *graph is NULL where it fails */
ENGINE_API cudaError_t engine_capture_end(cudaStream_t stream, engine_graph **graph);
ENGINE_API cudaError_t engine_capture_query(cudaStream_t stream, engine_capture_info *info);
ENGINE_API cudaError_t engine_capture_update(cudaStream_t stream, engine_node *const *tips, size_t count, bool replace);
ENGINE_API cudaError_t engine_capture_exchange(int *mode); /* this thread's */
/* cudaEventRecordExternal, cudaEventWaitExternal: in a capture they become nodes; else as without. */
ENGINE_API cudaError_t engine_event_record_external(cudaEvent_t event, cudaStream_t stream);
ENGINE_API cudaError_t engine_stream_wait_external(cudaStream_t stream, cudaEvent_t event);

/* In the stream, in the list's order, or, if that is captured, as one node of its graph. cudaErrorInvalidValue: an
 * empty batch, lists that are not there, kinds that no copy has, or what engine_copy_run refuses: *failed is its number
 * then (NULL: not asked), and what came before it has been done. */
ENGINE_API cudaError_t engine_copies_run(const engine_batch *batch, cudaStream_t stream, size_t *failed);

/* ---- user objects ---- */

ENGINE_API cudaError_t engine_object_create(void *data, cudaHostFn_t destroy, unsigned references,
                                            engine_object **object);
ENGINE_API cudaError_t engine_object_retain(engine_object *object, unsigned count);
ENGINE_API cudaError_t engine_object_release(engine_object *object, unsigned count);
ENGINE_API cudaError_t engine_graph_retain_object(engine_graph *graph, engine_object *object, unsigned count,
                                                  bool move);
ENGINE_API cudaError_t engine_graph_release_object(engine_graph *graph, engine_object *object, unsigned count);

/* ---- memory of graphs ---- */

/* cudaGraphMemAttributeType */
enum { ENGINE_GRAPH_USED, ENGINE_GRAPH_USED_HIGH, ENGINE_GRAPH_RESERVED, ENGINE_GRAPH_RESERVED_HIGH };
ENGINE_API cudaError_t engine_graph_memory_attribute(int device, int attribute, uint64_t *value);
/* To what it is now. cudaErrorInvalidValue: no high-water mark, or a value other than 0, which is read last. */
ENGINE_API cudaError_t engine_graph_memory_reset_high(int device, int attribute, const uint64_t *value);
ENGINE_API cudaError_t engine_graph_memory_trim(int device);

#endif
