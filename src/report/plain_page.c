/* SPDX-License-Identifier: Apache-2.0 */
/* See plain_page.h. */
#include "report/plain_page.h"

static const char style[] =
    "body{font:15px/1.45 system-ui,sans-serif;max-width:1120px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse;margin:1em 0}td,th{padding:.15em .8em;border-bottom:1px solid #ddd;text-align:left;"
    "vertical-align:top}td.n,th.n{text-align:right;white-space:nowrap}code{background:#f3f3f3;padding:.1em .3em}"
    "svg{max-width:100%;height:auto;margin:.5em 0}"
    "@media screen and (prefers-color-scheme:dark){body{background:#14171f;color:#e6e8ee}td,th{border-color:#444}"
    "code{background:#2a2f3a}a{color:#7db8f0}}"
    "@media screen and (max-width:700px){body{margin:1em auto}h1{font-size:1.5em}h2{font-size:1.2em}td,th{padding:.15em .4em}"
    "table,.picture{display:block;overflow-x:auto}svg{max-width:none}}";

void plain_page_begin(const char *title, const char *heading, const char *own_style, ff_text *out) {
  ff_text_add(out,
              "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
              "content=\"width=device-width,initial-scale=1\"><meta name=\"color-scheme\" content=\"light dark\">"
              "<title>%s</title>\n<style>%s%s</style>\n</head><body>\n<h1>%s</h1>\n",
              title, style, own_style, heading);
}

void plain_page_end(ff_text *out) { ff_text_add(out, "</body></html>\n"); }
