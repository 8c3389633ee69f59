/* SPDX-License-Identifier: Apache-2.0 */
/* A server of a few documents to browsers on this machine, for `farfault view`. It is in a library of its own,
 * libfarfault-http.so, so that nothing else of farfault is linked with an HTTP server.
 *
 * It listens on 127.0.0.1 only, answers GET and HEAD only, and only to requests whose Host is this machine's own name
 * (localhost, 127.0.0.1, [::1]; any port, for those that come through a tunnel): a site that lets its own name lead to
 * 127.0.0.1 (DNS rebinding) reads nothing. Nothing that a request says is looked for on disk. */
#ifndef FF_HTTP_SERVER_H
#define FF_HTTP_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct http_server http_server;

/* The library's only symbol is an http_library of this name. */
#define HTTP_LIBRARY_SYMBOL "farfault_http"
enum { HTTP_LIBRARY_VERSION = 1 };

typedef struct http_library {
  int version; /* HTTP_LIBRARY_VERSION, as the library was compiled with it */
  /* Listens on the port (0: on a free one, *bound says which), in a thread that takes the caller's signal mask. NULL:
   * it cannot, `why` says so. */
  http_server *(*start)(uint16_t port, uint16_t *bound, char *why, size_t why_size);
  /* From now on the document at `path` ("/", a constant) is these bytes, which are copied; `type` is a constant, too.
   * False: there is no memory, or no place for another path. */
  bool (*publish)(http_server *server, const char *path, const char *type, const char *bytes, size_t size);
  /* Whether a reader has got the document that is at `path` now, to its last byte. */
  bool (*was_read)(http_server *server, const char *path);
  /* Seconds since the last request; negative: there was none. */
  double (*quiet)(http_server *server);
  /* Ends all connections and frees the server. */
  void (*end)(http_server *server);
} http_library;

#endif
