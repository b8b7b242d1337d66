/* SPDX-License-Identifier: Apache-2.0 */
/* Transcription through the C interface, used from C: c_api_transcribe_test MODEL RECORDING; without the model what
 * needs none is tested, and 77 says that the rest wasn't. */
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
  int segments, stop;
  double end;
} Seen;

static int on_segment(const consonant_segment* segment, void* user) {
  Seen* seen = user;
  CHECK(segment->start >= seen->end && segment->end >= segment->start);
  CHECK(strlen(segment->text) == segment->text_length);
  seen->end = segment->end;
  ++seen->segments;
  return seen->stop;
}

static void test_errors(void) {
  consonant_transcribe_options options;
  consonant_transcript_facts facts;
  consonant_segment segment;
  consonant_word word;
  size_t count;
  CHECK(consonant_transcriber_load(NULL, NULL) == NULL && consonant_last_exit_code() == 2);
  CHECK(consonant_transcriber_load("/nonexistent", NULL) == NULL && consonant_last_exit_code() == 3);
  consonant_transcribe_options_init(&options);
  consonant_transcribe_options_init(NULL);
  CHECK(options.size == sizeof options && options.beam == 5 && options.duration == -1);
  CHECK(consonant_transcribe_file(NULL, "x", &options) == NULL && consonant_last_exit_code() == 2);
  CHECK(consonant_transcribe_samples(NULL, NULL, 0, &options) == NULL && consonant_last_exit_code() == 2);
  CHECK(consonant_transcript_info(NULL, &facts) == 2 && consonant_transcript_segment(NULL, 0, &segment) == 2);
  CHECK(consonant_transcript_word(NULL, 0, 0, &word) == 2 &&
        consonant_transcript_format(NULL, "txt", NULL, 0, &count) == 2);
  CHECK(consonant_transcriber_is_multilingual(NULL) == 0);
  consonant_transcriber_cancel(NULL);
  consonant_transcriber_free(NULL);
  consonant_transcript_free(NULL);
}

static void test_file(consonant_transcriber* transcriber, const char* recording) {
  static float silence[16000];
  Seen seen = {0, 0, 0};
  consonant_transcribe_options options;
  consonant_transcript_facts facts;
  consonant_segment segment;
  consonant_word word;
  char text[4096];
  size_t count = 0;
  consonant_transcript* transcript;
  consonant_transcribe_options_init(&options);
  options.on_segment = on_segment;
  options.user = &seen;
  options.word_times = 1;
  options.beam = 1;
  transcript = consonant_transcribe_file(transcriber, recording, &options);
  CHECK(transcript != NULL && consonant_transcript_info(transcript, &facts) == 0);
  if (!transcript) return;
  CHECK(facts.stop_reason == CONSONANT_END_TOKEN && strcmp(facts.language, "en") == 0);
  CHECK(strstr(facts.text, "your country") != NULL && strlen(facts.text) == facts.text_length);
  CHECK(facts.segment_count > 0 && (size_t)seen.segments == facts.segment_count && seen.end <= facts.duration);
  CHECK(consonant_transcript_segment(transcript, 0, &segment) == 0 && segment.word_count > 1 &&
        segment.token_count > 1);
  CHECK(consonant_transcript_word(transcript, 0, 1, &word) == 0 && word.end >= word.start && word.probability <= 1);
  CHECK(consonant_transcript_word(transcript, 0, segment.word_count, &word) == 2);
  CHECK(consonant_transcript_segment(transcript, facts.segment_count, &segment) == 2);
  CHECK(consonant_transcript_format(transcript, "srt", text, sizeof text, &count) == 0 && count < sizeof text);
  CHECK(memcmp(text, "1\n00:00:", 8) == 0);
  CHECK(consonant_transcript_format(transcript, "docx", text, sizeof text, &count) == 2);
  consonant_transcript_free(transcript);

  CHECK(consonant_transcribe_file(transcriber, "/nonexistent.wav", &options) == NULL &&
        consonant_last_exit_code() == 3);
  options.language = "qq";
  CHECK(consonant_transcribe_file(transcriber, recording, &options) == NULL && consonant_last_exit_code() == 2);
  options.language = "en";
  seen.end = 0;
  seen.stop = 1;
  transcript = consonant_transcribe_file(transcriber, recording, &options);
  CHECK(transcript != NULL && consonant_transcript_info(transcript, &facts) == 0);
  CHECK(transcript != NULL && facts.stop_reason == CONSONANT_CANCELLED);
  consonant_transcript_free(transcript);
  transcript = consonant_transcribe_samples(transcriber, silence, 16000, NULL);
  CHECK(transcript != NULL && consonant_transcript_info(transcript, &facts) == 0);
  CHECK(transcript != NULL && facts.segment_count == 0 && facts.duration == 1);
  consonant_transcript_free(transcript);
}

int main(int argc, char** argv) {
  consonant_transcriber* transcriber;
  FILE* config;
  char path[4096];
  if (argc != 3) return 2;
  test_errors();
  snprintf(path, sizeof path, "%s/config.json", argv[1]);
  config = fopen(path, "rb");
  if (!config) {
    fprintf(stderr, "no %s\n", argv[1]);
    return failures != 0 ? 1 : 77;
  }
  fclose(config);
  transcriber = consonant_transcriber_load(argv[1], NULL);
  CHECK(transcriber != NULL);
  if (transcriber) test_file(transcriber, argv[2]);
  consonant_transcriber_free(transcriber);
  return failures != 0;
}
