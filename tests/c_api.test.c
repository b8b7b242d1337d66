/* SPDX-License-Identifier: Apache-2.0 */
/* The C interface, used from C: c_api_test MODEL */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "consonant/consonant.h"

static int failures = 0;

#define CHECK(condition)                                                                                       \
  do {                                                                                                         \
    if (!(condition)) {                                                                                        \
      fprintf(stderr, "%s:%d: %s (last error: %s)\n", __FILE__, __LINE__, #condition, consonant_last_error()); \
      ++failures;                                                                                              \
    }                                                                                                          \
  } while (0)

typedef struct Seen {
  char text[4096];
  size_t length, tokens, calls, stop_after;
  consonant_session* cancel;
} Seen;

static int collect(const char* text, size_t length, const int32_t* tokens, size_t token_count, void* user) {
  Seen* seen = user;
  (void)tokens;
  if (seen->length + length < sizeof seen->text) memcpy(seen->text + seen->length, text, length);
  seen->length += length;
  seen->tokens += token_count;
  ++seen->calls;
  if (seen->cancel) consonant_cancel(seen->cancel);
  return seen->stop_after != 0 && seen->calls >= seen->stop_after;
}

static void test_errors(void) {
  consonant_engine_options options;
  CHECK(consonant_last_exit_code() == 0 && strcmp(consonant_last_error(), "") == 0);
  CHECK(consonant_load("/nonexistent.gguf", NULL) == NULL);
  CHECK(consonant_last_exit_code() == 3 && strstr(consonant_last_error(), "/nonexistent.gguf") != NULL);
  CHECK(consonant_load(NULL, NULL) == NULL && consonant_last_exit_code() == 2);
  consonant_engine_options_init(&options);
  options.device = "abacus";
  CHECK(consonant_load("/nonexistent.gguf", &options) == NULL);
  options.size = 1;
  CHECK(consonant_load("/nonexistent.gguf", &options) == NULL && consonant_last_exit_code() == 2);
  CHECK(consonant_session_new(NULL) == NULL && consonant_last_exit_code() == 2);
  CHECK(consonant_generate(NULL, NULL, 0, NULL, NULL, NULL, NULL) == 2);
  consonant_free(NULL);
  consonant_session_free(NULL);
  consonant_cancel(NULL);
}

static void test_text(const consonant_engine* engine) {
  int32_t tokens[64];
  char text[64];
  size_t count = 0, length = 0;
  CHECK(consonant_tokenize(engine, "Hello world", 11, 0, NULL, 0, &count) == 0 && count > 0 && count <= 64);
  CHECK(consonant_tokenize(engine, "Hello world", 11, 0, tokens, 64, &count) == 0);
  CHECK(consonant_detokenize(engine, tokens, count, text, sizeof text, &length) == 0);
  CHECK(length == 11 && memcmp(text, "Hello world", 11) == 0);
  CHECK(consonant_tokenize(engine, "\xff", 1, 0, tokens, 64, &count) == 3);
  CHECK(consonant_tokenize(engine, "a", 1, 0, NULL, 64, &count) == 2);
  tokens[0] = -1;
  CHECK(consonant_detokenize(engine, tokens, 1, text, sizeof text, &length) == 3);
}

static void test_render(const consonant_engine* engine) {
  static char deep[400001];
  char text[256];
  size_t count = 0;
  memset(deep, '[', 200000);
  memset(deep + 200000, ']', 200000);
  CHECK(consonant_render_chat(engine, "{\"messages\": []}", text, sizeof text, &count) == 0);
  CHECK(consonant_render_chat(engine, "[1]", text, sizeof text, &count) == 3);
  CHECK(consonant_render_chat(engine, "{", text, sizeof text, &count) == 3);
  CHECK(consonant_render_chat(engine, deep, text, sizeof text, &count) == 3);
  CHECK(consonant_render_chat(engine, NULL, text, sizeof text, &count) == 2);
}

/* A message too long for its room ends with a whole character. */
static void test_long_message(void) {
  static char path[6001];
  size_t i, n;
  for (i = 0; i < 6000; i += 3) memcpy(path + i, "\xE2\x82\xAC", 3);
  CHECK(consonant_load(path, NULL) == NULL && consonant_last_exit_code() == 3);
  n = strlen(consonant_last_error());
  CHECK(n > 2000 && n % 3 == 0 && memcmp(consonant_last_error() + n - 3, "\xE2\x82\xAC", 3) == 0);
}

/* What doesn't bound is refused: it would be taken for no bound at all. */
static void test_bounds(consonant_session* session) {
  const int32_t prompt[1] = {1};
  consonant_generate_options options;
  consonant_generate_options_init(&options);
  options.max_tokens = -2;
  CHECK(consonant_generate(session, prompt, 1, &options, NULL, NULL, NULL) == 2);
  options.max_tokens = 1;
  options.deadline = -1;
  CHECK(consonant_generate(session, prompt, 1, &options, NULL, NULL, NULL) == 2);
  options.deadline = NAN;
  CHECK(consonant_generate(session, prompt, 1, &options, NULL, NULL, NULL) == 2);
  options.deadline = 1e300;
  CHECK(consonant_generate(session, prompt, 1, &options, NULL, NULL, NULL) == 0);
}

static void test_generate(const consonant_engine* engine, consonant_session* session) {
  const char* stop = NULL;
  int32_t prompt[64];
  size_t count = 0;
  consonant_generate_options options;
  consonant_result result;
  Seen first, second;
  memset(&first, 0, sizeof first);
  CHECK(consonant_tokenize(engine, "Hello", 5, 1, prompt, 64, &count) == 0);
  consonant_generate_options_init(&options);
  options.max_tokens = 8;
  options.ignore_eos = 1;
  CHECK(consonant_generate(session, prompt, count, &options, collect, &first, &result) == 0);
  CHECK(result.stop_reason == CONSONANT_CALLER_LIMIT && result.generated_tokens == 8 && first.tokens == 8);
  CHECK(result.prompt_tokens == (int64_t)count && result.first_token_s > 0);

  memset(&second, 0, sizeof second);
  CHECK(consonant_generate(session, prompt, count, &options, collect, &second, NULL) == 0);
  CHECK(second.length == first.length && memcmp(second.text, first.text, first.length) == 0);

  memset(&second, 0, sizeof second);
  second.stop_after = 1;
  CHECK(consonant_generate(session, prompt, count, &options, collect, &second, &result) == 0);
  CHECK(result.stop_reason == CONSONANT_CANCELLED && second.calls == 1);
  memset(&second, 0, sizeof second);
  second.cancel = session;
  CHECK(consonant_generate(session, prompt, count, &options, collect, &second, &result) == 0);
  CHECK(result.stop_reason == CONSONANT_CANCELLED && result.generated_tokens < 8);

  options.top_p = 2;
  CHECK(consonant_generate(session, prompt, count, &options, NULL, NULL, NULL) == 2);
  options.top_p = 1;
  options.stop = &stop;
  options.stop_count = 1;
  CHECK(consonant_generate(session, prompt, count, &options, NULL, NULL, NULL) == 2);
  CHECK(consonant_generate(session, prompt, 0, NULL, NULL, NULL, NULL) == 3);
}

int main(int argc, char** argv) {
  consonant_engine* engine;
  consonant_session* session;
  if (argc != 2) return 2;
  CHECK(strlen(consonant_version()) >= 5);
  test_errors();
  test_long_message();
  engine = consonant_load(argv[1], NULL);
  CHECK(engine != NULL);
  if (!engine) return 1;
  test_text(engine);
  test_render(engine);
  session = consonant_session_new(engine);
  CHECK(session != NULL);
  CHECK(consonant_session_new(engine) == NULL && consonant_last_exit_code() == 1); /* there is room for one */
  if (session) test_generate(engine, session);
  if (session) test_bounds(session);
  consonant_free(engine);
  consonant_session_free(session);
  return failures != 0;
}
