/* SPDX-License-Identifier: Apache-2.0 */
/* Continues a text with a model, through the C interface: generate MODEL TEXT */
#include <consonant/consonant.h>
#include <stdio.h>
#include <string.h>

static int print(const char* text, size_t length, const int32_t* tokens, size_t token_count, void* user) {
  (void)tokens, (void)token_count, (void)user;
  return fwrite(text, 1, length, stdout) == length && fflush(stdout) == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL TEXT\n", argv[0]), 2;
  consonant_engine* engine = consonant_load(argv[1], NULL);
  consonant_session* session = engine ? consonant_session_new(engine) : NULL;
  int32_t prompt[256];
  size_t count = 0;
  int code = session ? consonant_tokenize(engine, argv[2], strlen(argv[2]), 1, prompt, 256, &count)
                     : consonant_last_exit_code();
  if (code == 0 && count > 256) return fprintf(stderr, "a text of %zu tokens is too long for this example\n", count), 3;
  if (code == 0) {
    consonant_generate_options options;
    consonant_generate_options_init(&options);
    options.max_tokens = 32;
    code = consonant_generate(session, prompt, count, &options, print, NULL, NULL);
    putchar('\n');
  }
  if (code != 0) fprintf(stderr, "error: %s\n", consonant_last_error());
  consonant_session_free(session);
  consonant_free(engine);
  return code;
}
