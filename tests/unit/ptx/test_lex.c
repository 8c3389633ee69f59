/* SPDX-License-Identifier: Apache-2.0 */
/* The scanner: what each piece of text becomes, and where it stands. */
#include "ptx_test.h"

#include "ptx/syntax/lex.h"

static ptx_lexer start(const char *text) { return (ptx_lexer){text, text + strlen(text), text, 1}; }

static ptx_token only(const char *text) {
  ptx_lexer lexer = start(text);
  ptx_token token, end;
  ptx_lex(&lexer, &token);
  ptx_lex(&lexer, &end);
  if (token.kind != PTX_TOKEN_BAD) assert_int_equal(end.kind, PTX_TOKEN_END);
  return token;
}

static void integers(void **state) {
  static const struct {
    const char *text;
    uint64_t value;
    bool is_unsigned;
  } cases[] = {
      {"0", 0, false},
      {"42", 42, false},
      {"0x1F", 31, false},
      {"0XfU", 15, true},
      {"017", 15, false},
      {"0b101", 5, false},
      {"7U", 7, true},
      {"9223372036854775807", INT64_MAX, false},
      {"9223372036854775808", UINT64_C(1) << 63, true},
      {"0xFFFFFFFFFFFFFFFF", UINT64_MAX, true},
      {"18446744073709551615", UINT64_MAX, true},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ptx_token token = only(cases[i].text);
    assert_int_equal(token.kind, PTX_TOKEN_INTEGER);
    assert_true(token.bits == cases[i].value);
    assert_int_equal(token.is_unsigned, cases[i].is_unsigned);
  }
}

static void floats(void **state) {
  ptx_token token = only("0f3F800000");
  assert_int_equal(token.kind, PTX_TOKEN_F32);
  assert_true(token.bits == 0x3F800000);
  token = only("0dBFF8000000000000");
  assert_int_equal(token.kind, PTX_TOKEN_F64);
  assert_true(token.bits == UINT64_C(0xBFF8000000000000));
  static const struct {
    const char *text;
    double value;
  } cases[] = {{"1.5", 1.5}, {"0.1", 0.1}, {"1e3", 1000}, {"2.5E-3", 0.0025}, {"3.", 3}, {"012.5", 12.5}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    token = only(cases[i].text);
    assert_int_equal(token.kind, PTX_TOKEN_F64);
    double value;
    memcpy(&value, &token.bits, sizeof value);
    assert_true(value == cases[i].value);
  }
}

static void bad_words(void **state) {
  static const char *const cases[] = {"18446744073709551616",
                                      "0xFFFFFFFFFFFFFFFF0",
                                      "089",
                                      "12abc",
                                      "0f3F80000",
                                      "0x",
                                      "\"open",
                                      "/* open",
                                      "\x80",
                                      "0b2",
                                      "\x01"};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ptx_token token = only(cases[i]);
    assert_int_equal(token.kind, PTX_TOKEN_BAD);
    assert_non_null(token.problem);
  }
}

static void names_and_words(void **state) {
  static const char *const names[] = {"add", "$L__BB0_1", "%r12", "_", "_Z3fooPi", "%tid"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    ptx_token token = only(names[i]);
    assert_int_equal(token.kind, PTX_TOKEN_NAME);
    assert_int_equal(token.length, strlen(names[i]));
  }
  static const char *const words[] = {".global", ".L2::128B", ".mbarrier::complete_tx::bytes", ".1d", ".m16n8k16"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    ptx_token token = only(words[i]);
    assert_int_equal(token.kind, PTX_TOKEN_DOTTED);
    assert_int_equal(token.length, strlen(words[i]) - 1);
    assert_ptr_equal(token.chars, words[i] + 1);
  }
}

static void places(void **state) {
  ptx_lexer lexer = start("a // c\xff\n\t/* two\nlines */ b\r\n c");
  static const struct { uint32_t line, column; } expected[] = {{1, 1}, {3, 10}, {4, 2}};
  ptx_token token;
  for (size_t i = 0; i < 3; i++) {
    ptx_lex(&lexer, &token);
    assert_int_equal(token.kind, PTX_TOKEN_NAME);
    assert_int_equal(token.place.line, expected[i].line);
    assert_int_equal(token.place.column, expected[i].column);
  }
  for (int i = 0; i < 3; i++) {
    ptx_lex(&lexer, &token);
    assert_int_equal(token.kind, PTX_TOKEN_END);
  }
}

static void operators(void **state) {
  ptx_lexer lexer = start("<< >> <= >= == != && || < % %r \"a\\\"b\"");
  static const int expected[] = {PTX_TOKEN_SHIFT_LEFT,
                                 PTX_TOKEN_SHIFT_RIGHT,
                                 PTX_TOKEN_LESS_EQUAL,
                                 PTX_TOKEN_GREATER_EQUAL,
                                 PTX_TOKEN_EQUAL,
                                 PTX_TOKEN_NOT_EQUAL,
                                 PTX_TOKEN_AND_AND,
                                 PTX_TOKEN_OR_OR,
                                 '<',
                                 '%',
                                 PTX_TOKEN_NAME,
                                 PTX_TOKEN_STRING,
                                 PTX_TOKEN_END};
  ptx_token token;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    ptx_lex(&lexer, &token);
    assert_int_equal(token.kind, expected[i]);
    if (token.kind == PTX_TOKEN_STRING) assert_int_equal(token.length, 4);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers),        cmocka_unit_test(floats), cmocka_unit_test(bad_words),
      cmocka_unit_test(names_and_words), cmocka_unit_test(places), cmocka_unit_test(operators),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
