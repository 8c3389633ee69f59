/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: what is put on a stream becomes nodes of a graph (CUDA C++ Programming Guide, "Stream Capture").
 *
 *     NONE --engine_capture_begin, or a wait for an event recorded in a captured stream--> ACTIVE
 *     ACTIVE --engine_capture_end in the stream where it began--> NONE, in all its streams
 *     ACTIVE --a call that a capture forbids--> INVALIDATED --engine_capture_end: cudaErrorStreamCaptureInvalidated--> NONE
 *
 * A captured stream has *tips*: the nodes that its next one comes after. A captured event has those of its stream when
 * it was recorded; waiting for it adds them to the waiting stream's, which thereby is captured, too. The legacy default
 * stream is not captured, and using it while a blocking stream is would need to wait for that one:
 * cudaErrorStreamCaptureImplicit. */
#include <stdlib.h>
#include <string.h>

#include "driver/engine/engine_graph_private.h"

static _Thread_local int thread_mode = ENGINE_CAPTURE_GLOBAL;

static engine_capture *capture_of(uint64_t id) {
  engine_capture *c = ff_graphs.captures;
  while (c && c->id != id) c = c->next;
  return c;
}

static void add_tip(engine_stream *stream, engine_node *node) {
  for (size_t i = 0; i < stream->tips.count; i++)
    if (stream->tips.items[i] == node) return;
  if (engine_node_live(node) && node->graph == stream->capture->graph) FF_PUSH(&stream->tips, node);
}

static cudaError_t invalidate(engine_capture *capture, cudaError_t error) {
  capture->invalid = true;
  return error;
}

/* The legacy default stream would wait for what does not happen. */
static cudaError_t check_legacy(const engine_stream *stream) {
  if (!engine_stream_is_legacy(stream)) return cudaSuccess;
  for (engine_stream *s = ff_engine.streams; ff_graphs.captures && s; s = s->next)
    if (s->capture && s->device == stream->device && !(s->flags & cudaStreamNonBlocking))
      return invalidate(s->capture, cudaErrorStreamCaptureImplicit);
  return cudaSuccess;
}

static cudaError_t capture_node(engine_stream *stream, engine_node_params *params) {
  engine_capture *capture = stream->capture;
  engine_node *node;
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  size_t kept = 0;
  for (size_t i = 0; i < stream->tips.count; i++) /* the program may have destroyed some */
    if (engine_node_live(stream->tips.items[i])) stream->tips.items[kept++] = stream->tips.items[i];
  stream->tips.count = kept;
  if (!params->where.given) params->where = engine_where_now(stream);
  cudaError_t error;
  if (capture->again) {
    error = engine_recapture_node(capture, stream->device, stream->tips.items, stream->tips.count, params, &node);
    if (error) return error;
    if (!engine_stream_lives(stream)) return cudaErrorStreamCaptureInvalidated;
  } else {
    error = engine_graph_add_locked(capture->graph, stream->device, stream->tips.items, NULL, stream->tips.count,
                                    params, &node);
    if (error) return invalidate(capture, error);
  }
  stream->tips.count = 0;
  FF_PUSH(&stream->tips, node);
  return cudaSuccess;
}

cudaError_t engine_capture_take(engine_stream *stream, engine_node_params *params, bool async, bool *taken) {
  *taken = false;
  if (!ff_graphs.captures) return cudaSuccess;
  cudaError_t error = check_legacy(stream);
  if (error || !stream->capture) return error;
  if (!async) return engine_capture_refuse(stream);
  *taken = true;
  return capture_node(stream, params);
}

cudaError_t engine_capture_refuse(engine_stream *stream) {
  if (!ff_graphs.captures) return cudaSuccess;
  cudaError_t error = check_legacy(stream);
  if (error || !stream->capture) return error;
  return invalidate(stream->capture, cudaErrorStreamCaptureUnsupported);
}

/* The rule of cudaThreadExchangeStreamCaptureMode: by this thread's mode, whose captures count. */
cudaError_t engine_capture_unsafe(void) {
  if (thread_mode == ENGINE_CAPTURE_RELAXED) return cudaSuccess;
  for (engine_capture *c = ff_graphs.captures; c; c = c->next) {
    bool own = pthread_equal(c->thread, pthread_self());
    bool counts = own ? c->mode != ENGINE_CAPTURE_RELAXED
                      : c->mode == ENGINE_CAPTURE_GLOBAL && thread_mode == ENGINE_CAPTURE_GLOBAL;
    if (counts) return invalidate(c, cudaErrorStreamCaptureUnsupported);
  }
  return cudaSuccess;
}

cudaError_t engine_capture_any(void) {
  cudaError_t error = cudaSuccess;
  for (engine_capture *c = ff_graphs.captures; c; c = c->next) error = invalidate(c, cudaErrorStreamCaptureUnsupported);
  return error;
}

/* ---- events ---- */

cudaError_t engine_capture_record(engine_event *event, engine_stream *stream, bool *taken) {
  *taken = false;
  if (!ff_graphs.captures && !event->capture) return cudaSuccess;
  cudaError_t error = check_legacy(stream);
  if (error) return error;
  event->capture = 0;
  event->tips.count = 0;
  if (!stream->capture) return cudaSuccess;
  if (stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  *taken = true;
  event->capture = stream->capture->id;
  for (size_t i = 0; i < stream->tips.count; i++) FF_PUSH(&event->tips, stream->tips.items[i]);
  return cudaSuccess;
}

cudaError_t engine_capture_wait(engine_stream *stream, engine_event *event, bool *taken) {
  *taken = false;
  if (!ff_graphs.captures && !event->capture) return cudaSuccess;
  cudaError_t error = check_legacy(stream);
  if (error) return error;
  engine_capture *theirs = event->capture ? capture_of(event->capture) : NULL;
  if (stream->capture && stream->capture->invalid) return cudaErrorStreamCaptureInvalidated;
  if (event->capture && !theirs) return cudaErrorCapturedEvent; /* its capture is over: nothing will ever record it */
  if (!theirs) return stream->capture ? invalidate(stream->capture, cudaErrorStreamCaptureIsolation) : cudaSuccess;
  if (stream->capture && stream->capture != theirs) {
    invalidate(theirs, cudaSuccess);
    return invalidate(stream->capture, cudaErrorStreamCaptureMerge);
  }
  if (theirs->invalid) return cudaErrorStreamCaptureInvalidated;
  if (engine_stream_is_legacy(stream)) return invalidate(theirs, cudaErrorStreamCaptureImplicit);
  *taken = true;
  stream->capture = theirs;
  for (size_t i = 0; i < event->tips.count; i++) add_tip(stream, event->tips.items[i]);
  return cudaSuccess;
}

static cudaError_t external(cudaEvent_t handle, cudaStream_t stream_handle, engine_node_kind kind) {
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_event *event = engine_event_find(handle);
  engine_stream *stream = engine_stream_find(stream_handle);
  bool taken = false;
  if (!event || !stream) error = engine_stream_error(stream_handle);
  else {
    engine_node_params params = {.kind = kind, .event = handle};
    error = engine_capture_take(stream, &params, true, &taken);
  }
  engine_leave();
  if (error || taken) return error;
  return kind == ENGINE_NODE_RECORD ? engine_event_record(handle, stream_handle)
                                    : engine_stream_wait(stream_handle, handle);
}

cudaError_t engine_event_record_external(cudaEvent_t event, cudaStream_t stream) {
  return external(event, stream, ENGINE_NODE_RECORD);
}
cudaError_t engine_stream_wait_external(cudaStream_t stream, cudaEvent_t event) {
  return external(event, stream, ENGINE_NODE_WAIT);
}

/* ---- begin and end ---- */

cudaError_t engine_capture_begin_locked(engine_stream *stream, int mode, engine_graph *graph, engine_node *const *tips,
                                        size_t count) {
  if (engine_stream_is_legacy(stream)) return cudaErrorStreamCaptureUnsupported;
  if (stream->capture) return cudaErrorIllegalState;
  if (graph && (!engine_graph_live(graph) || graph->exec)) return cudaErrorInvalidValue;
  for (size_t i = 0; i < count; i++)
    if (!engine_node_live(tips[i]) || tips[i]->graph != graph) return cudaErrorInvalidValue;
  engine_capture *capture = ff_alloc(sizeof *capture);
  *capture = (engine_capture){.id = ++ff_graphs.next_capture,
                              .graph = graph ? graph : engine_graph_make(),
                              .given = graph != NULL,
                              .mode = mode,
                              .thread = pthread_self(),
                              .device = stream->device,
                              .origin = stream,
                              .next = ff_graphs.captures};
  ff_graphs.captures = capture;
  stream->capture = capture;
  stream->tips.count = 0;
  for (size_t i = 0; i < count; i++) add_tip(stream, tips[i]);
  return cudaSuccess;
}

cudaError_t engine_capture_begin(cudaStream_t handle, int mode, engine_graph *graph, engine_node *const *tips,
                                 size_t count) {
  if (mode < ENGINE_CAPTURE_GLOBAL || mode > ENGINE_CAPTURE_RELAXED || (count && !tips)) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  error = stream ? engine_capture_begin_locked(stream, mode, graph, tips, count) : engine_stream_error(handle);
  engine_leave();
  return error;
}

/* Does every node that a stream's next one would come after lead to the origin's? */
static bool joined(const engine_capture *capture) {
  uint64_t mark = ++ff_graphs.next_mark;
  FF_VEC(engine_node *) open = {0};
  const engine_stream *origin = capture->origin;
  for (size_t i = 0; i < origin->tips.count; i++)
    if (engine_node_live(origin->tips.items[i])) {
      origin->tips.items[i]->mark = mark;
      FF_PUSH(&open, origin->tips.items[i]);
    }
  while (open.count) {
    const engine_node *node = open.items[--open.count];
    for (size_t i = 0; i < node->before.count; i++)
      if (node->before.items[i].node->mark != mark) {
        node->before.items[i].node->mark = mark;
        FF_PUSH(&open, node->before.items[i].node);
      }
  }
  free(open.items);
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    for (size_t i = 0; s->capture == capture && i < s->tips.count; i++)
      if (engine_node_live(s->tips.items[i]) && s->tips.items[i]->mark != mark) return false;
  for (size_t i = 0; i < capture->left.count; i++)
    if (engine_node_live(capture->left.items[i]) && capture->left.items[i]->mark != mark) return false;
  return true;
}

static void leave_capture(engine_stream *stream) {
  stream->capture = NULL;
  free(stream->tips.items);
  memset(&stream->tips, 0, sizeof stream->tips);
}

static void finish(engine_capture *capture) {
  for (engine_stream *s = ff_engine.streams; s; s = s->next)
    if (s->capture == capture) leave_capture(s);
  engine_capture **at = &ff_graphs.captures;
  while (*at != capture) at = &(*at)->next;
  *at = capture->next;
  free(capture->left.items);
  free(capture);
}

static cudaError_t end_locked(engine_stream *stream, engine_graph **graph) {
  engine_capture *capture = stream->capture;
  if (!capture) return cudaErrorIllegalState;
  if (capture->mode != ENGINE_CAPTURE_RELAXED && !pthread_equal(capture->thread, pthread_self()))
    return cudaErrorStreamCaptureWrongThread;
  if (capture->origin != stream) return invalidate(capture, cudaErrorStreamCaptureUnmatched);
  engine_graph *made = capture->graph;
  cudaError_t error = capture->invalid                   ? cudaErrorStreamCaptureInvalidated
                      : !joined(capture)                 ? cudaErrorStreamCaptureUnjoined
                      : !engine_recapture_whole(capture) ? cudaErrorGraphRecaptureFailure
                                                         : cudaSuccess;
  bool drop = error && made && !capture->given;
  finish(capture);
  if (drop) engine_graph_free(made);
  if (!error) *graph = made;
  return error;
}

cudaError_t engine_capture_end(cudaStream_t handle, engine_graph **graph) {
  engine_graph *made = NULL; /* a program that captured into its own graph may pass NULL */
  if (graph) *graph = NULL;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  bool given = stream && stream->capture && stream->capture->given;
  error = stream ? end_locked(stream, &made) : engine_stream_error(handle);
  if (graph) *graph = made;
  else if (made && !given) engine_graph_free(made);
  engine_leave();
  return error;
}

/* Without the stream where it began no one can end it. */
void engine_capture_forget(engine_stream *stream) {
  engine_capture *capture = stream->capture;
  if (!capture) return;
  if (capture->origin == stream) {
    capture->invalid = true;
    engine_graph *made = capture->given ? NULL : capture->graph;
    finish(capture);
    if (made) engine_graph_free(made);
  } else {
    for (size_t i = 0; i < stream->tips.count; i++) FF_PUSH(&capture->left, stream->tips.items[i]);
    leave_capture(stream);
  }
}

/* ---- asking and steering ---- */

cudaError_t engine_capture_query(cudaStream_t handle, engine_capture_info *info) {
  static const engine_edge plain[64];
  static engine_edge *many; /* zeros, for longer lists; they live as long as the process */
  static size_t many_count;
  cudaError_t error = engine_enter_now();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  *info = (engine_capture_info){.status = ENGINE_CAPTURE_NONE};
  if (!stream) error = engine_stream_error(handle);
  else if (!stream->capture) error = check_legacy(stream);
  else if (stream->capture->invalid) info->status = ENGINE_CAPTURE_INVALIDATED;
  else {
    *info = (engine_capture_info){.status = ENGINE_CAPTURE_ACTIVE,
                                  .id = stream->capture->id,
                                  .graph = stream->capture->graph,
                                  .tips = stream->tips.items,
                                  .edges = plain,
                                  .count = stream->tips.count};
    if (info->count > sizeof plain / sizeof *plain) {
      if (many_count < info->count) {
        many_count = 2 * info->count;
        many = ff_alloc(many_count * sizeof *many);
      }
      info->edges = many;
    }
  }
  engine_leave();
  return error;
}

cudaError_t engine_capture_update(cudaStream_t handle, engine_node *const *tips, size_t count, bool replace) {
  if (count && !tips) return cudaErrorInvalidValue;
  cudaError_t error = engine_enter();
  if (error) return error;
  engine_stream *stream = engine_stream_find(handle);
  if (!stream) error = engine_stream_error(handle);
  else if (!stream->capture) error = cudaErrorIllegalState;
  else if (stream->capture->invalid) error = cudaErrorStreamCaptureInvalidated;
  for (size_t i = 0; !error && i < count; i++)
    if (!engine_node_live(tips[i]) || tips[i]->graph != stream->capture->graph) error = cudaErrorInvalidValue;
  if (!error && replace) stream->tips.count = 0;
  for (size_t i = 0; !error && i < count; i++) add_tip(stream, tips[i]);
  engine_leave();
  return error;
}

cudaError_t engine_capture_exchange(int *mode) {
  if (!mode || *mode < ENGINE_CAPTURE_GLOBAL || *mode > ENGINE_CAPTURE_RELAXED) return cudaErrorInvalidValue;
  int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return cudaSuccess;
}
