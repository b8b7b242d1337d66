// SPDX-License-Identifier: Apache-2.0
// For the leak sanitizer: libsndfile forgets a Vorbis header when it refuses the file.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() { return "leak:libvorbis\n"; }
