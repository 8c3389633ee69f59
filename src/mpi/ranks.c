/* SPDX-License-Identifier: Apache-2.0 */
/* libfarfault-mpi.so: what carries the messages of a sweep between ranks, by Open MPI (or another MPI). `farfault
 * sweep` loads it when mpirun has started it; nothing else of farfault uses MPI.
 *
 * A message goes out in pieces that are small enough to be sent at once (MPI's eager ones), so that
 * a rank that ends in the midst of one leaves no rank waiting for the rest: its pieces are there or they are not. Sends
 * are never waited for but at the end. Errors come back as codes (MPI_ERRORS_RETURN) and are taken as what they are: a
 * rank that is silent. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sweep/rank_message.h"

enum { PIECE = 2048, TAG = 1 };
static const uint64_t MESSAGE_LIMIT = UINT64_C(1) << 30;

typedef struct outgoing {
  MPI_Request request;
  struct outgoing *next;
  char bytes[];
} outgoing;

typedef struct incoming { /* from one rank: the message that is coming */
  char *bytes;
  uint64_t size, have; /* size 0: none */
} incoming;

static outgoing *going;
static incoming *coming;
static int ranks;

static void complain(char *why, size_t size, const char *what, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  snprintf(why, size, "%s: %.*s", what, length, text);
}

static bool start(int *rank, int *count, char *why, size_t why_size) {
  int given, code = MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &given);
  if (code) {
    complain(why, why_size, "MPI_Init", code);
    return false;
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, count);
  ranks = *count;
  coming = calloc((size_t)ranks, sizeof *coming);
  if (!coming) snprintf(why, why_size, "no memory");
  return coming != NULL;
}

/* Frees what has gone out. */
static void tidy(void) {
  for (outgoing **at = &going; *at;) {
    outgoing *one = *at;
    int gone = 0;
    if (MPI_Test(&one->request, &gone, MPI_STATUS_IGNORE) != MPI_SUCCESS) gone = 1;
    if (gone) {
      *at = one->next;
      free(one);
    } else at = &one->next;
  }
}

static void send_piece(int to, const char *head, size_t head_size, const char *bytes, size_t size) {
  outgoing *one = malloc(sizeof *one + head_size + size);
  if (!one) return; /* the receiver will take us for lost */
  memcpy(one->bytes, head, head_size);
  memcpy(one->bytes + head_size, bytes, size);
  if (MPI_Isend(one->bytes, (int)(head_size + size), MPI_CHAR, to, TAG, MPI_COMM_WORLD, &one->request) != MPI_SUCCESS) {
    free(one);
    return;
  }
  one->next = going;
  going = one;
}

/* The first piece begins with the size of the whole. */
static void send(int to, const void *bytes, size_t size) {
  uint64_t whole = size;
  size_t done = size < PIECE - sizeof whole ? size : PIECE - sizeof whole;
  send_piece(to, (const char *)&whole, sizeof whole, bytes, done);
  for (size_t part; done < size; done += part) {
    part = size - done < PIECE ? size - done : PIECE;
    send_piece(to, NULL, 0, (const char *)bytes + done, part);
    tidy();
  }
  tidy();
}

/* Takes in one piece; true: it was a message's last. */
static bool take(incoming *from, const char *piece, size_t size) {
  if (!from->size) {
    if (size < sizeof from->size) return false;
    memcpy(&from->size, piece, sizeof from->size);
    piece += sizeof from->size;
    size -= sizeof from->size;
    from->have = 0;
    from->bytes = from->size && from->size <= MESSAGE_LIMIT ? malloc(from->size + 1) : NULL;
    if (!from->bytes) {
      from->size = 0;
      return false;
    }
  }
  if (size > from->size - from->have) size = from->size - from->have;
  memcpy(from->bytes + from->have, piece, size);
  from->have += size;
  return from->have == from->size;
}

static bool receive(int *from, char **bytes, size_t *size) {
  char piece[PIECE];
  for (;;) {
    MPI_Status status;
    int there = 0, length = 0;
    if (going) tidy();
    if (MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &there, &status) != MPI_SUCCESS || !there) return false;
    if (MPI_Recv(piece, PIECE, MPI_CHAR, status.MPI_SOURCE, TAG, MPI_COMM_WORLD, &status) != MPI_SUCCESS) return false;
    MPI_Get_count(&status, MPI_CHAR, &length);
    if (status.MPI_SOURCE < 0 || status.MPI_SOURCE >= ranks || length < 0) return false;
    incoming *one = &coming[status.MPI_SOURCE];
    if (!take(one, piece, (size_t)length)) continue;
    *from = status.MPI_SOURCE;
    *bytes = one->bytes;
    *size = one->size;
    one->bytes[one->size] = '\0';
    *one = (incoming){0};
    return true;
  }
}

static void end(bool all, double seconds) {
  struct timespec begun, now, pause = {.tv_nsec = 1000000};
  clock_gettime(CLOCK_MONOTONIC, &begun);
  do {
    tidy();
    if (!going) break;
    nanosleep(&pause, NULL);
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while ((double)(now.tv_sec - begun.tv_sec) + (double)(now.tv_nsec - begun.tv_nsec) / 1e9 < seconds);
  for (int i = 0; i < ranks; i++) free(coming[i].bytes);
  free(coming);
  coming = NULL;
  if (all && !going) MPI_Finalize(); /* it waits for every rank: not with one that is gone */
}

__attribute__((visibility("default")))
const sweep_ranks farfault_ranks = {SWEEP_RANKS_VERSION, start, send, receive, end};
