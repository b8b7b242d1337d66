/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONSONANT_H
#define CONSONANT_H

/* The C interface. Functions that return an int return 0, or the exit code of the program for that kind of error: 1
 * failed, 2 wrong usage, 3 bad input, 4 the device can't run the model, 6 the device stalled, 8 not enough memory.
 * Functions that return a pointer return NULL then. What went wrong is in consonant_last_error() of the same thread.
 * Nothing throws.
 *
 * Strings are UTF-8. Options are initialised by their function first, which keeps programs working when fields are
 * added. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A loaded model, and a sequence of it. An engine has room for one session: another one fails until that one is freed.
 * An engine's functions for text may be called from several threads at once; a session belongs to one thread at a time,
 * but for consonant_cancel. */
typedef struct consonant_engine consonant_engine;
typedef struct consonant_session consonant_session;

typedef enum consonant_stop_reason {
  CONSONANT_END_TOKEN = 0, /* the model said so */
  CONSONANT_STOP_STRING = 1,
  CONSONANT_CALLER_LIMIT = 2, /* max_tokens */
  CONSONANT_INPUT_BOUND = 3,
  CONSONANT_CONTEXT_FULL = 4,
  CONSONANT_DEADLINE = 5,
  CONSONANT_CANCELLED = 6
} consonant_stop_reason;

typedef struct consonant_engine_options {
  size_t size;           /* of this struct; set by consonant_engine_options_init */
  const char* device;    /* "auto", "cpu", "reference" */
  int32_t threads;       /* 0: one a core that this process may use */
  const char* precision; /* "auto", "f32" */
  const char* kv;        /* "f16", "f32", "q8_0"; NULL: as the precision suggests */
  int64_t context;       /* positions a sequence may hold; 0: the model's own */
} consonant_engine_options;

typedef struct consonant_generate_options {
  size_t size;          /* of this struct; set by consonant_generate_options_init */
  float temperature;    /* 0 (initially): greedy */
  int32_t top_k;        /* 0: off */
  float top_p;          /* 1: off */
  float min_p;          /* 0: off */
  float typical;        /* 1: off */
  float repeat_penalty; /* 1: off */
  float frequency_penalty;
  float presence_penalty;
  uint64_t seed;
  int64_t max_tokens;      /* -1: up to what the context leaves */
  const char* const* stop; /* stop_count strings that end the text before them */
  size_t stop_count;
  int32_t ignore_eos;
  double deadline; /* seconds; 0: none */
} consonant_generate_options;

typedef struct consonant_result {
  consonant_stop_reason stop_reason;
  int64_t prompt_tokens, generated_tokens;
  double prompt_s, generate_s, first_token_s;
} consonant_result;

/* Called with each piece of text (whole characters, not ended by a zero) and the ids that came with it. Anything but 0
 * stops the generation. */
typedef int (*consonant_on_text)(const char* text, size_t length, const int32_t* tokens, size_t token_count,
                                 void* user);

const char* consonant_version(void);

/* Of the last call of this thread that failed; "" and 0 before any did. Valid until the next one fails. */
const char* consonant_last_error(void);
int consonant_last_exit_code(void);

void consonant_engine_options_init(consonant_engine_options* options);
void consonant_generate_options_init(consonant_generate_options* options);

/* `options` may be NULL. */
consonant_engine* consonant_load(const char* path, const consonant_engine_options* options);
void consonant_free(consonant_engine* engine); /* its sessions may live on */

/* These write at most `capacity` elements and set `count` to how many there are: call again with more room if it is
 * greater. `text` of `length` bytes need not end in a zero; what is written doesn't either. `add_special`: BOS and EOS
 * as the model wants; special tokens that the text spells are those tokens. */
int consonant_tokenize(const consonant_engine* engine, const char* text, size_t length, int add_special,
                       int32_t* tokens, size_t capacity, size_t* count);
int consonant_detokenize(const consonant_engine* engine, const int32_t* tokens, size_t token_count, char* text,
                         size_t capacity, size_t* count);
/* By the model's chat template; `variables` is a JSON object: {"messages": [{"role": "user", "content": "Hi"}],
 * "add_generation_prompt": true}. The text holds the special tokens it needs. */
int consonant_render_chat(const consonant_engine* engine, const char* variables, char* text, size_t capacity,
                          size_t* count);

consonant_session* consonant_session_new(consonant_engine* engine);
void consonant_session_free(consonant_session* session);

/* Continues `prompt`, the whole sequence so far; what the session's cache holds of it is not read again. 0 means that
 * the generation ended for one of the reasons in `result`, which may be NULL, as may `on_text` and `options`. */
int consonant_generate(consonant_session* session, const int32_t* prompt, size_t prompt_count,
                       const consonant_generate_options* options, consonant_on_text on_text, void* user,
                       consonant_result* result);

/* Stops a running consonant_generate, from another thread or a signal handler. */
void consonant_cancel(consonant_session* session);

/* Speech to text. A transcriber belongs to one thread at a time, but for consonant_transcriber_cancel. */
typedef struct consonant_transcriber consonant_transcriber;
typedef struct consonant_transcript consonant_transcript;

/* What is said between two times, in seconds from where the recording was read. The text ends in a zero too. Pointers
 * are valid as long as the transcript; in a callback, until it returns. */
typedef struct consonant_segment {
  double start, end;
  const char* text;
  size_t text_length;
  double avg_logprob, no_speech_prob;
  const int32_t* tokens;
  size_t token_count, word_count; /* words: if they were asked for */
} consonant_segment;

typedef struct consonant_word {
  double start, end;
  const char* text; /* with the space before it */
  size_t text_length;
  double probability;
} consonant_word;

typedef struct consonant_transcript_facts {
  consonant_stop_reason stop_reason; /* of deadline and cancelled there are the segments so far */
  const char* text;                  /* of all segments; valid as long as the transcript, as the language */
  size_t text_length;
  const char* language;
  double language_probability, duration;
  size_t segment_count;
} consonant_transcript_facts;

/* Called with each finished segment; anything but 0 stops. And between windows, with the seconds done and in all, which
 * is -1 if it isn't known. */
typedef int (*consonant_on_segment)(const consonant_segment* segment, void* user);
typedef void (*consonant_on_progress)(double done, double all, void* user);

typedef struct consonant_transcribe_options {
  size_t size;          /* of this struct; set by consonant_transcribe_options_init */
  const char* language; /* "en", "English"; "auto" (initially): what it sounds like */
  int32_t translate;    /* into English */
  const char* prompt;   /* text that might have come before; NULL: none */
  int32_t beam;         /* 5; 1: greedy */
  int32_t best_of;      /* 5: candidates when sampling */
  int32_t fallback;     /* 1: repeated or improbable text is decoded again at higher temperatures */
  int32_t context;      /* 1: a window's text is given to the next one */
  int32_t batch;        /* 1: windows decoded together, without context */
  int32_t word_times;
  const char* vad_model;   /* Silero VAD's weights, to leave out what isn't speech; NULL: off */
  double offset, duration; /* of a file, in seconds; -1 (initially): to its end */
  double deadline;         /* seconds; 0: none */
  uint64_t seed;
  consonant_on_segment on_segment;
  consonant_on_progress on_progress;
  void* user; /* handed to them */
} consonant_transcribe_options;

void consonant_transcribe_options_init(consonant_transcribe_options* options);

/* A Whisper model: Hugging Face or CTranslate2 folder, whisper.cpp file, GGUF file. `options` may be NULL. */
consonant_transcriber* consonant_transcriber_load(const char* path, const consonant_engine_options* options);
void consonant_transcriber_free(consonant_transcriber* transcriber);
int consonant_transcriber_is_multilingual(const consonant_transcriber* transcriber);

/* A recording to its end. Samples are mono, 16,000 a second, in -1 ... 1. `options` may be NULL. */
consonant_transcript* consonant_transcribe_file(consonant_transcriber* transcriber, const char* path,
                                                const consonant_transcribe_options* options);
consonant_transcript* consonant_transcribe_samples(consonant_transcriber* transcriber, const float* samples,
                                                   size_t count, const consonant_transcribe_options* options);

/* Stops what the transcriber is doing, from another thread or a signal handler. */
void consonant_transcriber_cancel(consonant_transcriber* transcriber);

int consonant_transcript_info(const consonant_transcript* transcript, consonant_transcript_facts* facts);
int consonant_transcript_segment(const consonant_transcript* transcript, size_t index, consonant_segment* segment);
int consonant_transcript_word(const consonant_transcript* transcript, size_t segment, size_t index,
                              consonant_word* word);
/* As "txt", "srt", "vtt", "json", "csv" or "tsv"; `capacity` and `count` as above. */
int consonant_transcript_format(const consonant_transcript* transcript, const char* format, char* text, size_t capacity,
                                size_t* count);
void consonant_transcript_free(consonant_transcript* transcript);

#ifdef __cplusplus
}
#endif

#endif
