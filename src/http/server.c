/* SPDX-License-Identifier: Apache-2.0 */
/* libfarfault-http.so, by GNU libmicrohttpd: see server.h.
 *
 * One thread of the library serves all connections. Documents are MHD's responses, which it counts references of: one
 * that is replaced while it is being sent is sent to its end. The lock guards the list of documents. */
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "http/server.h"

enum { DOCUMENTS = 8, CONNECTIONS = 32, IDLE_S = 60 };

typedef struct document {
  const char *path;
  struct MHD_Response *response;
  uint64_t number; /* of its contents */
  uint64_t read;   /* the newest contents that a reader got whole */
} document;

struct http_server {
  struct MHD_Daemon *daemon;
  pthread_mutex_t lock;
  document documents[DOCUMENTS];
  uint32_t count;
  double last; /* request, seconds of the monotonic clock; 0: there was none */
};

typedef struct request { /* that is being answered with a document */
  document *document;
  uint64_t number;
} request;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* "localhost:8000": the port does not matter. */
static bool is_own_name(const char *host) {
  static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
  for (size_t i = 0; host && i < sizeof names / sizeof names[0]; i++) {
    size_t length = strlen(names[i]);
    if (strncasecmp(host, names[i], length)) continue;
    const char *rest = host + length;
    if (!*rest || (*rest == ':' && strspn(rest + 1, "0123456789") == strlen(rest + 1))) return true;
  }
  return false;
}

/* A second Host that differs is no request of a browser. */
static enum MHD_Result check_host(void *own, enum MHD_ValueKind kind, const char *key, const char *value) {
  (void)kind;
  if (!strcasecmp(key, "Host") && !is_own_name(value)) *(bool *)own = false;
  return MHD_YES;
}

static bool is_for_us(struct MHD_Connection *connection) {
  bool own = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host") != NULL;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, check_host, &own);
  return own;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned status, const char *text) {
  struct MHD_Response *response =
      MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
  if (!response) return MHD_NO;
  MHD_add_response_header(response, "Content-Type", "text/plain; charset=utf-8");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
  enum MHD_Result result = MHD_queue_response(connection, status, response);
  MHD_destroy_response(response);
  return result;
}

static document *find(http_server *server, const char *path) {
  for (uint32_t i = 0; i < server->count; i++)
    if (!strcmp(server->documents[i].path, path)) return &server->documents[i];
  return NULL;
}

/* What is read of it whole counts if the request ends well; without memory to remember that it does not. */
static enum MHD_Result send_document(http_server *server, struct MHD_Connection *connection, const char *path,
                                     bool whole, void **context) {
  pthread_mutex_lock(&server->lock);
  document *found = find(server, path);
  enum MHD_Result result = found ? MHD_queue_response(connection, MHD_HTTP_OK, found->response) : MHD_NO;
  request *asked = found && whole ? malloc(sizeof *asked) : NULL;
  if (asked) *asked = (request){.document = found, .number = found->number};
  pthread_mutex_unlock(&server->lock);
  *context = asked;
  return found ? result : refuse(connection, MHD_HTTP_NOT_FOUND, "There is nothing here.\n");
}

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url, const char *method,
                              const char *version, const char *upload, size_t *upload_size, void **of_request) {
  (void)version, (void)upload, (void)upload_size;
  http_server *server = context;
  bool get = !strcmp(method, "GET");
  pthread_mutex_lock(&server->lock);
  server->last = now();
  pthread_mutex_unlock(&server->lock);
  if (!is_for_us(connection)) return refuse(connection, MHD_HTTP_FORBIDDEN, "This server is for localhost only.\n");
  if (!get && strcmp(method, "HEAD")) return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD.\n");
  return send_document(server, connection, url, get, of_request);
}

static void completed(void *context, struct MHD_Connection *connection, void **of_request,
                      enum MHD_RequestTerminationCode how) {
  (void)connection;
  http_server *server = context;
  request *asked = *of_request;
  if (!asked) return;
  pthread_mutex_lock(&server->lock);
  if (how == MHD_REQUEST_TERMINATED_COMPLETED_OK && asked->document->read < asked->number)
    asked->document->read = asked->number;
  pthread_mutex_unlock(&server->lock);
  free(asked);
  *of_request = NULL;
}

/* MHD would write to stderr what browsers do wrong. */
static void say_nothing(void *context, const char *format, va_list arguments) {
  (void)context, (void)format, (void)arguments;
}

static http_server *start(uint16_t port, uint16_t *bound, char *why, size_t why_size) {
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  http_server *server = calloc(1, sizeof *server);
  if (!server) return snprintf(why, why_size, "no memory"), NULL;
  pthread_mutex_init(&server->lock, NULL);
  errno = 0;
  server->daemon = MHD_start_daemon(MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ERROR_LOG, port, NULL, NULL, answer, server,
                                    MHD_OPTION_EXTERNAL_LOGGER, say_nothing, NULL, MHD_OPTION_SOCK_ADDR, &address,
                                    MHD_OPTION_CONNECTION_LIMIT, (unsigned)CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
                                    (unsigned)IDLE_S, MHD_OPTION_NOTIFY_COMPLETED, completed, server, MHD_OPTION_END);
  if (!server->daemon) {
    snprintf(why, why_size, "%s", errno ? strerror(errno) : "the server does not start");
    pthread_mutex_destroy(&server->lock);
    free(server);
    return NULL;
  }
  *bound = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
  return server;
}

static bool publish(http_server *server, const char *path, const char *type, const char *bytes, size_t size) {
  struct MHD_Response *response =
                          MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, MHD_RESPMEM_MUST_COPY),
                      *old = NULL;
  if (!response) return false;
  MHD_add_response_header(response, "Content-Type", type);
  MHD_add_response_header(response, "Cache-Control", "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "X-Frame-Options", "SAMEORIGIN");               /* other sites do not show it, */
  MHD_add_response_header(response, "Cross-Origin-Resource-Policy", "same-origin"); /* nor load it */
  pthread_mutex_lock(&server->lock);
  document *at = find(server, path);
  if (!at && server->count < DOCUMENTS) {
    at = &server->documents[server->count++];
    *at = (document){.path = path};
  }
  if (at) {
    old = at->response;
    at->response = response;
    at->number++;
  }
  pthread_mutex_unlock(&server->lock);
  if (old) MHD_destroy_response(old);
  if (!at) MHD_destroy_response(response);
  return at != NULL;
}

static bool was_read(http_server *server, const char *path) {
  pthread_mutex_lock(&server->lock);
  document *found = find(server, path);
  bool whole = found && found->read == found->number;
  pthread_mutex_unlock(&server->lock);
  return whole;
}

static double quiet(http_server *server) {
  pthread_mutex_lock(&server->lock);
  double last = server->last;
  pthread_mutex_unlock(&server->lock);
  return last > 0 ? now() - last : -1;
}

static void end(http_server *server) {
  MHD_stop_daemon(server->daemon);
  for (uint32_t i = 0; i < server->count; i++) MHD_destroy_response(server->documents[i].response);
  pthread_mutex_destroy(&server->lock);
  free(server);
}

__attribute__((visibility("default"))) const http_library farfault_http = {
    .version = HTTP_LIBRARY_VERSION,
    .start = start,
    .publish = publish,
    .was_read = was_read,
    .quiet = quiet,
    .end = end,
};
