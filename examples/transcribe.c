/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what is said in a recording, while it is found out, through the C interface: transcribe MODEL RECORDING */
#include <consonant/consonant.h>
#include <stdio.h>

static int print(const consonant_segment* segment, void* user) {
  (void)user;
  return printf("[%7.2f - %7.2f]%s\n", segment->start, segment->end, segment->text) < 0 || fflush(stdout) != 0;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: %s MODEL RECORDING\n", argv[0]), 2;
  consonant_transcriber* transcriber = consonant_transcriber_load(argv[1], NULL);
  consonant_transcribe_options options;
  consonant_transcribe_options_init(&options);
  options.on_segment = print;
  consonant_transcript* transcript = transcriber ? consonant_transcribe_file(transcriber, argv[2], &options) : NULL;
  consonant_transcript_facts facts;
  int code = transcript ? consonant_transcript_info(transcript, &facts) : consonant_last_exit_code();
  if (code == 0) {
    printf("%.1f s, language %s (%.2f)\n", facts.duration, facts.language, facts.language_probability);
  } else {
    fprintf(stderr, "error: %s\n", consonant_last_error());
  }
  consonant_transcript_free(transcript);
  consonant_transcriber_free(transcriber);
  return code;
}
